package checkers

import (
	"math"
	"slices"
)

// claim is what an answer says about one object at one moment, some time between
// call and ret.
type claim struct {
	how       claimKind
	revision  int64 // of the answer; 0 if it is not told
	uid       string
	pre       int64 // the revision that the request required; 0 is any
	maybeGone bool  // the write may have removed the object
	call, ret int64
	evidence  Evidence
}

// claimKind is what a claim says about its object.
type claimKind int

const (
	isPresent claimKind = iota // the object existed, at claim.revision
	isAbsent                   // the object did not exist
	exists                     // the object existed, at an unknown revision
	differs                    // the object was not at the revision pre: 409 Conflict
	created
	wrote
	removed
	marked // a deletion that answered with the object, which is still there or was removed
	stored // the store itself reported the change
)

// changes reports whether the claim says that the object was changed.
func (c *claim) changes() bool { return c.how >= created }

// endless is later than everything.
const endless = math.MaxInt64

// The times of a claim are twice those of the history, so that a request with a Start
// at the End of another comes after it: Porcupine's intervals include both ends.
func callOf(start int64) int64 { return 2*start + 1 }

func returnOf(end int64) int64 {
	if end == 0 {
		return endless
	}
	return 2 * end
}

// claimOf returns what an operation claims about the object it is about.
func claimOf(o op) (*claim, bool) {
	c := &claim{call: callOf(o.Start), ret: returnOf(o.End), evidence: Evidence{Operation: o.Operation}, pre: o.Sent.Revision}
	if (o.verb == verbGet) && !o.reads(consistent) {
		return nil, false
	}
	switch o.outcome() {
	case done:
		return c, c.done(o)
	case refused:
		return c, c.refused(o)
	}
	return nil, false
}

// reads reports whether the request asks for that freshness.
func (o op) reads(f freshness) bool {
	fresh, _ := o.freshness()
	return fresh == f
}

// done fills in the claim of a request that succeeded. It returns false if the answer
// claims nothing about the object.
func (c *claim) done(o op) bool {
	one, ok := o.one()
	c.revision, c.uid = one.Revision, one.UID
	c.maybeGone = one.Deleting && one.Finalizers == ""
	switch o.verb {
	case verbGet:
		c.how = isPresent
	case verbCreate:
		c.how = created
		return ok && o.subresource == ""
	case verbUpdate, verbPatch:
		c.how = wrote
		if o.Code == 201 {
			c.how = created
		}
	case verbDelete:
		switch {
		case o.subresource != "":
			return false
		case !ok: // a Status
			c.how, c.revision, c.uid = removed, 0, o.About.UID
			return len(o.Objects) == 0 && o.Code == 200
		case one.Finalizers == "" && !one.Deleting:
			c.how = removed
		default:
			c.how = marked
		}
	}
	return ok
}

// refused fills in the claim of a request that was refused. It returns false if the
// refusal claims nothing about the object.
func (c *claim) refused(o op) bool {
	about := o.About.Name == o.target().object && o.About.Name != ""
	switch {
	case o.subresource != "" || !about:
		return false
	case o.Code == 404 && o.About.Kind == o.resource.name && o.verb != verbCreate:
		c.how = isAbsent
	case o.Code == 409 && o.Reason == "AlreadyExists" && o.verb == verbCreate && o.Sent.Name != "":
		c.how = exists
	case o.Code == 409 && o.Reason == "Conflict" && o.verb != verbCreate && c.pre > 0:
		c.how, c.uid = differs, o.Sent.UID
	default:
		return false
	}
	return true
}

// sure reports whether the claim's revision is certainly that of its own change. An update
// that changes nothing is answered with the revision of an earlier write.
func (c *claim) sure() bool {
	switch c.how {
	case created:
		return true
	case wrote:
		return c.pre > 0 && c.revision > c.pre
	case removed:
		return c.revision > 0
	}
	return false
}

// listing is a consistent list, which reads each object of its scope.
type listing struct {
	op
	scope
	items map[key]Object
}

// listings returns the consistent lists of a history, by resource.
func (x *index) listings() map[resource][]listing {
	all := map[resource][]listing{}
	for _, o := range x.ops {
		if o.verb != verbList || o.outcome() != done || o.Operation.Revision <= 0 || !o.reads(consistent) {
			continue
		}
		l := listing{o, scopeOf(o.request), map[key]Object{}}
		for _, item := range o.Objects {
			l.items[l.keyOf(item)] = item
		}
		all[l.scope.resource] = append(all[l.scope.resource], l)
	}
	return all
}

// claim returns what a list claims about an object.
func (l listing) claim(k key) (*claim, bool) {
	if !l.covers(k) {
		return nil, false
	}
	c := &claim{how: isAbsent, call: callOf(l.Start), ret: returnOf(l.End), evidence: Evidence{Operation: l.Operation}}
	item, ok := l.items[k]
	if !ok { // it may be on a later page, or not be selected
		return c, l.all() && l.Continue == ""
	}
	c.how, c.revision, c.uid = isPresent, item.Revision, item.UID
	return c, item.Revision > 0
}

// essential leaves out the reads that others imply. An object is at a revision for one
// contiguous time, so of the reads of one revision, the one that ends first and the one
// that begins last imply the rest. The same holds for the reads that found no object
// within one gap: see gaps.
func essential(claims []*claim) []*claim {
	type group struct {
		revision int64
		uid      string
		gap      int // the gap between the other claims, for isAbsent; else -1
	}
	var others []*claim
	for _, c := range claims {
		if c.how != isAbsent {
			others = append(others, c)
		}
	}
	gap := gaps(others)
	first, last := map[group]*claim{}, map[group]*claim{}
	groupOf := func(c *claim) (group, bool) {
		switch c.how {
		case isPresent:
			return group{c.revision, c.uid, -1}, true
		case isAbsent:
			n, quiet := gap(c)
			return group{0, "", n}, quiet
		}
		return group{}, false
	}
	for _, c := range claims {
		if g, ok := groupOf(c); ok {
			if first[g] == nil || c.ret < first[g].ret {
				first[g] = c
			}
			if last[g] == nil || c.call > last[g].call {
				last[g] = c
			}
		}
	}
	return slices.DeleteFunc(claims, func(c *claim) bool {
		g, ok := groupOf(c)
		return ok && first[g] != c && last[g] != c
	})
}

// gaps returns a function that reports whether a claim lies in a gap, which is a time
// that overlaps none of the claims given here, and the number of that gap.
func gaps(claims []*claim) func(*claim) (int, bool) {
	var calls, returns []int64
	for _, c := range claims {
		calls, returns = append(calls, c.call), append(returns, c.ret)
	}
	slices.Sort(calls)
	slices.Sort(returns)
	return func(c *claim) (int, bool) {
		ended, _ := slices.BinarySearch(returns, c.call)
		begun, found := slices.BinarySearch(calls, c.ret)
		return ended, ended == begun && !found
	}
}
