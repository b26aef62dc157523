package checkers

import (
	"maps"
	"slices"
)

// spares are the requests of which it is unknown whether or when they took effect. In a
// Closed history, each can explain one change of an object that nothing else explains.
type spares struct {
	free     [spareKinds][]int64 // when those that require no revision were called, ascending
	required []spare             // those that require a revision
}

// spare is one such request.
type spare struct {
	kind spareKind
	call int64
	pre  int64 // the revision that it requires; 0 is any
}

// spareKind says what a request may do to an object.
type spareKind int

const (
	spareCreation spareKind = iota // create it
	spareDeletion                  // write it or remove it, as deletecollection or POST to a subresource may
	spareUpdate                    // write it, remove it, or create it if it requires no revision
	spareKinds
)

// spareOf returns what a request may have done unseen, now or later.
func spareOf(o op) (spare, bool) {
	s := spare{call: callOf(o.Start), pre: o.Sent.Revision}
	_, claims := claimOf(o)
	unknown := o.outcome() == doubtful || o.outcome() == done && !claims
	switch {
	case !unknown:
		return s, false
	case o.verb == verbCreate && o.subresource == "":
		s.kind, s.pre = spareCreation, 0
	case o.verb == verbUpdate || o.verb == verbPatch:
		s.kind = spareUpdate
	case o.verb == verbDelete:
		s.kind = spareDeletion
	case o.verb == verbDeleteCollection || o.verb == verbCreate:
		s.kind, s.pre = spareDeletion, 0
	default:
		return s, false
	}
	return s, true
}

// wide is a request that may have changed any object of a resource unseen, such as a
// deletecollection.
type wide struct {
	resource
	namespace string // empty for all namespaces
	spare
}

// wides returns the requests that may have changed objects that they do not name.
func (x *index) wides() (all []wide) {
	for _, o := range x.ops {
		s, ok := spareOf(o)
		if ok && (o.verb == verbDeleteCollection || o.target().object == "") {
			all = append(all, wide{o.resource, o.request.namespace, s})
		}
	}
	return all
}

// sparesOf returns the requests that may have changed an object unseen: some of its own,
// and the wide ones of its resource.
func sparesOf(k key, own []op, wides []wide) (all spares) {
	for _, o := range own {
		if s, ok := spareOf(o); ok {
			all.add(s)
		}
	}
	for _, w := range wides {
		if w.resource == k.resource && (w.namespace == "" || w.namespace == k.namespace) {
			all.add(w.spare)
		}
	}
	for _, calls := range all.free {
		slices.Sort(calls)
	}
	return all
}

func (all *spares) add(s spare) {
	if s.pre > 0 {
		all.required = append(all.required, s)
	} else {
		all.free[s.kind] = append(all.free[s.kind], s.call)
	}
}

// none reports whether there are none.
func (all *spares) none() bool {
	return len(all.required)+len(all.free[spareCreation])+len(all.free[spareDeletion])+len(all.free[spareUpdate]) == 0
}

// spend returns the states after one of the requests has made a change of an object.
//
// Few choices need to be tried. The search is at a claim, and no remaining claim ended
// before that claim was called. So a request that began before then fits here without
// changing the order of the claims, and of those it is enough to take the one that is of
// least use later: a request that requires the revision that the change ends, or else one
// of the kind that can do least. A request that began later is a further choice; nothing
// after it may come before its call, which is what the state's floor says.
func (all *spares) spend(s state, n needed) (states []state) {
	add := func(next state, call int64) (best bool) {
		if call > s.now {
			next.floor = max(next.floor, call)
		}
		states = append(states, next)
		return call <= s.now
	}
	kinds := []spareKind{spareDeletion, spareUpdate}
	if n == creation {
		kinds[0] = spareCreation
	} else if all.spendRequired(s, add) {
		return states
	}
	for _, kind := range kinds {
		if used := int(s.used[kind]); used < len(all.free[kind]) {
			next := s
			next.used[kind]++
			if add(next, all.free[kind][used]) {
				return states
			}
		}
	}
	return states
}

// spendRequired adds the states after a request has found the revision that it requires.
// The object leaves that revision for good, so no other request that requires it can be
// of use later, and the states need not say which one was used. If the state's revision
// is exact, a request that began in time is the best choice.
func (all *spares) spendRequired(s state, add func(state, int64) bool) (best bool) {
	first := map[int64]int64{} // the first call for each revision
	for _, r := range all.required {
		if call, ok := first[r.pre]; s.how == present && s.mayBe(r.pre) && (!ok || r.call < call) {
			first[r.pre] = r.call
		}
	}
	for _, revision := range slices.Sorted(maps.Keys(first)) {
		next := s
		next.revision = revision
		best = add(next, first[revision]) && s.exact
	}
	return best
}
