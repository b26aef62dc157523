package checkers

import (
	"maps"
	"slices"
)

// spares are the requests of which it is unknown whether or when they were done. In a
// closed history, each explains one change of an object that nothing else does.
type spares struct {
	free     [spareKinds][]int64 // the calls of those that require no revision, ascending
	required []spare             // those that do
}

// spare is one of them.
type spare struct {
	kind spareKind
	call int64
	pre  int64 // the revision that it requires; 0 is any
}

// spareKind says what a request may do to an object.
type spareKind int

const (
	spareCreation spareKind = iota // create it
	spareDeletion                  // write it or remove it, as other rare ones may
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

// wide are the requests that may have changed any object of a resource unseen.
type wide struct {
	resource
	namespace string // of all if empty
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

// sparesOf returns what may have been done to an object unseen.
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
// There is little to choose. The search is at a claim, and no claim that is left was
// over before that one's call. So whatever began before that call may come here
// without upsetting the order, and of those it is best to take what is of least use
// later: who requires the revision that is over now, else who can do least. Who began
// later sets a floor, and is another choice.
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

// spendRequired adds the states after one of the requests that require a revision has
// found it. No such request is of use again, for the object leaves the revision, so
// there is no need to keep account. If the revision is known, who is in time is the best choice.
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
