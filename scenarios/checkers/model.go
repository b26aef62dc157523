package checkers

import "slices"

// state is what an object may be like at one moment.
type state struct {
	how      stateKind
	revision int64
	exact    bool // it is at the revision; else it is, or was removed, at a later one
	uid      string
	used     [spareKinds]int32 // how many spares of each kind have been used
	floor    int64             // when a used spare was called: claims that ended before can't follow
	now      int64             // the call of the claim that is being tried
}

type stateKind int

const (
	unknown stateKind = iota // whatever it was before the history
	absent                   // removed at the revision or later
	present
)

// regime says which requests may change an object besides the claims of the history.
type regime int

const (
	open    regime = iota // any, at any time
	closed                // only those of the history whose outcome is not known: see spares
	watched               // none: the store has told every change
)

// model says which states of an object are possible. Given a state and a claim, step returns
// every state that the object may be in after the claim.
type model struct {
	regime
	object  *object
	horizon int64  // of the store
	spares  spares // in a closed history
}

// initial returns the states before the history.
func (m *model) initial() []state {
	if m.regime == watched {
		return []state{{how: absent}}
	}
	return []state{{}}
}

// step returns the states after a claim, none if it can't be true. A spare that explains the
// claim must have been called before the claim was over.
func (m *model) step(s state, c *claim) []state {
	s.now = c.call
	if s.floor <= c.call { // no remaining claim ended before c.call, so the floor excludes none
		s.floor = 0
	}
	states := slices.DeleteFunc(m.after(s, c), func(s state) bool { return c.ret < s.floor })
	for i := range states {
		states[i].now = 0
	}
	return states
}

func (m *model) after(s state, c *claim) []state {
	switch c.how {
	case isPresent:
		return m.at(s, c.revision, c.uid)
	case isAbsent:
		return m.toAbsent(s)
	case exists:
		return m.toPresent(s)
	case differs:
		return m.toOther(s, c.pre, c.uid)
	case created:
		return each(m.toAbsent(s), func(s state) []state { return m.write(s, c.revision, c.uid) })
	case wrote:
		return each(m.required(s, c), func(s state) []state { return m.wrote(s, c) })
	case removed:
		return each(m.required(s, c), func(s state) []state { return m.remove(s, c.revision) })
	case marked:
		return m.marked(s, c)
	case stored:
		return m.stored(s, c.revision)
	}
	return nil
}

// each joins what f returns for each state.
func each(states []state, f func(state) []state) (all []state) {
	for _, s := range states {
		for _, next := range f(s) {
			if !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

// needed is the kind of change that must have been made by an unknown client.
type needed int

const (
	creation needed = iota
	update
	removal
)

// hidden returns the states from which a change by an unknown client can be made: in a closed
// history, a spare has been used up for it. The caller makes the change.
func (m *model) hidden(s state, n needed) []state {
	switch {
	case m.regime == open || m.regime == watched && m.object.next(s.revision) == nil:
		return []state{s}
	case m.regime == watched:
		return nil
	}
	return m.spares.spend(s, n)
}

// to returns the state with another content.
func (s state) to(how stateKind, revision int64, exact bool, uid string) state {
	s.how, s.revision, s.exact, s.uid = how, revision, exact, uid
	return s
}

// mayBe reports whether the object may be at a revision.
func (s state) mayBe(revision int64) bool {
	if s.exact {
		return s.revision == revision
	}
	return s.revision < revision
}

// toAbsent returns the states in which the object is not there.
func (m *model) toAbsent(s state) []state {
	switch s.how {
	case unknown:
		return []state{s.to(absent, 0, false, "")}
	case absent:
		return []state{s}
	}
	return each(m.hidden(s, removal), func(s state) []state { return []state{s.to(absent, s.revision+1, false, "")} })
}

// toPresent returns the states in which the object is there.
func (m *model) toPresent(s state) []state {
	switch s.how {
	case unknown:
		return []state{s.to(present, 0, false, "")}
	case present:
		return []state{s}
	}
	return each(m.hidden(s, creation), func(s state) []state { return []state{s.to(present, s.revision, false, "")} })
}

// same reports whether the UIDs may be of one object.
func same(a, b string) bool { return a == "" || b == "" || a == b }

// toUID returns the states in which the object of that UID is there.
func (m *model) toUID(s state, uid string) []state {
	if s.how == present && !same(s.uid, uid) {
		return each(m.toAbsent(s), func(s state) []state { return m.toUID(s, uid) })
	}
	return each(m.toPresent(s), func(s state) []state {
		if uid != "" {
			s.uid = uid
		}
		return []state{s}
	})
}

// at returns the states in which the object of that UID is at a revision.
func (m *model) at(s state, revision int64, uid string) []state {
	return each(m.toUID(s, uid), func(s state) []state {
		next := s.to(present, revision, true, s.uid)
		switch {
		case s.exact && revision == s.revision:
			return []state{s}
		case revision <= s.revision || !m.allows(s, revision, set):
			return nil
		case !s.exact:
			return []state{next}
		}
		return each(m.hidden(s, update), func(s state) []state { return []state{s.to(present, revision, true, s.uid)} })
	})
}

// toOther returns the states in which the object is not at a revision.
func (m *model) toOther(s state, revision int64, uid string) []state {
	if s.how != present || !s.exact || s.revision != revision || !same(s.uid, uid) {
		return []state{s}
	}
	changed := each(m.hidden(s, update), func(s state) []state { return []state{s.to(present, s.revision, false, s.uid)} })
	return append(changed, m.toAbsent(s)...)
}

// required returns the states in which a request can do something that requires a
// revision or a UID.
func (m *model) required(s state, c *claim) []state {
	if c.pre > 0 {
		return m.at(s, c.pre, c.uid)
	}
	return m.toUID(s, c.uid)
}

// allows reports whether the store may have changed the object at a revision next.
func (m *model) allows(s state, revision int64, how effect) bool {
	if m.regime != watched {
		return true
	}
	if next := m.object.next(s.revision); next != nil {
		return next.revision == revision && next.how == how
	}
	return revision > m.horizon
}

// write returns the states after the object has been written at a revision.
func (m *model) write(s state, revision int64, uid string) []state {
	if revision <= s.revision || !m.allows(s, revision, set) {
		return nil
	}
	return []state{s.to(present, revision, true, uid)}
}

// remove returns the states after the object has been removed, at some revision if it
// is 0.
func (m *model) remove(s state, revision int64) []state {
	if revision > 0 {
		if revision <= s.revision || !m.allows(s, revision, gone) {
			return nil
		}
		return []state{s.to(absent, revision, true, "")}
	}
	if next := m.object.next(s.revision); m.regime == watched && next != nil {
		if next.how != gone {
			return nil
		}
		return []state{s.to(absent, next.revision, true, "")}
	}
	return []state{s.to(absent, s.revision+1, false, "")}
}

// wrote returns the states after an update or a patch that was answered with a
// revision. It may have changed nothing; and the answer to one that removes the last
// finalizer has the revision from before.
func (m *model) wrote(s state, c *claim) []state {
	if s.exact && s.revision == c.revision {
		states := []state{s}
		if c.maybeGone {
			states = append(states, m.remove(s, 0)...)
		}
		return states
	}
	states := m.write(s, c.revision, c.uid)
	if c.maybeGone && c.pre == 0 {
		states = append(states, each(m.at(s, c.revision, c.uid), func(s state) []state { return m.remove(s, 0) })...)
	}
	return states
}

// marked returns the states after a deletion that was answered with the object: it
// waits for finalizers or for its time, or was removed.
func (m *model) marked(s state, c *claim) []state {
	required := *c
	if c.maybeGone { // a graceful deletion changes the object first, and then removes it
		required.pre = 0
	}
	return each(m.required(s, &required), func(s state) []state {
		if s.exact && s.revision == c.revision {
			states := []state{s}
			if c.maybeGone {
				states = append(states, m.remove(s, 0)...)
			}
			return states
		}
		states := m.write(s, c.revision, c.uid)
		if c.maybeGone {
			states = append(states, m.remove(s, c.revision)...)
		}
		return states
	})
}

// stored returns the states after a change that the store has told. Whoever has made
// it may have been before.
func (m *model) stored(s state, revision int64) []state {
	if s.revision >= revision {
		return []state{s}
	}
	next := m.object.next(s.revision)
	if next == nil || next.revision != revision {
		return nil
	}
	if next.how == gone {
		return []state{s.to(absent, revision, true, "")}
	}
	uid := m.object.contents[revision].UID
	if uid == "" && s.how == present {
		uid = s.uid
	}
	return []state{s.to(present, revision, true, uid)}
}
