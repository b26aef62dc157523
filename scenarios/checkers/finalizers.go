package checkers

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FinalizersOwned judges whether finalizers are kept until their owners remove them.
//
// It proves, by "Finalizers" of the Kubernetes documentation, that
//
//   - an object that has finalizers is not removed: a deletion only marks it, and it is
//     gone once an update or a patch has removed the last of them. The event for the
//     removal may still show these finalizers, for an object that is being deleted,
//   - only an update or a patch removes a finalizer. A deletion may choose between
//     "orphan" and "foregroundDeletion", which belong to the garbage collector.
//
// It needs to know what an object was like right before a change: from a deletion
// that required a revision, from a store that was watched, or in a Closed history from
// the operations. Who removed a finalizer, and whether it was theirs, is not judged,
// nor what others may have done between two revisions that were seen.
//
// A server looks for finalizers before it deletes an object, not while it does: one
// that is added in between is lost. A finding of that kind is upstream's behaviour.
type FinalizersOwned struct{}

// Name implements Checker.
func (FinalizersOwned) Name() string { return "finalizers" }

// Check implements Checker.
func (c FinalizersOwned) Check(ctx context.Context, h *History) Result {
	result := Result{Check: c.Name(), Unit: "objects"}
	x := newIndex(h)
	wides := x.wides()
	for _, k := range x.keys {
		if result.stopped(ctx) {
			break
		}
		f := finalizing{object: x.objects[k], index: x}
		if !f.has() {
			continue
		}
		result.Judged++
		if h.Closed {
			f.unseen = sparesOf(k, f.ops, wides)
		}
		f.judge(&result)
	}
	for _, s := range x.streams {
		unmarked(&result, s)
	}
	return result
}

// unmarked finds DELETED events whose object had finalizers but was not being deleted. A
// DELETED event has the last state of its object.
func unmarked(result *Result, s *stream) {
	for i := range s.Events {
		e := &s.Events[i]
		if e.Type == eventDeleted && s.all() && e.Object.Finalizers != "" && !e.Object.Deleting {
			result.broken([]Evidence{{Watch: s.Watch, Event: e}}, "%s had the finalizers %s and was not being deleted when it was removed", s.keyOf(e.Object), clean(e.Object.Finalizers))
		}
	}
}

// finalizing is the check of one object's finalizers.
type finalizing struct {
	*object
	index  *index
	unseen spares // requests that may have changed the object unseen
}

// has reports whether the object was ever seen with finalizers.
func (f *finalizing) has() bool {
	for _, o := range f.contents {
		if o.Finalizers != "" {
			return true
		}
	}
	return false
}

// judge judges each deletion of the object.
func (f *finalizing) judge(result *Result) {
	for _, o := range f.ops {
		c, ok := claimOf(o)
		if !ok || o.verb != verbDelete || o.outcome() != done {
			continue
		}
		before, ok := f.before(c)
		if !ok || before.Finalizers == "" {
			continue
		}
		evidence := sorted(append(f.tellings(before.Revision), c.evidence)...)
		after, _ := o.one()
		if c.how == removed {
			result.broken(evidence, "%s had the finalizers %s at revision %d, and was removed by a deletion", f.key, clean(before.Finalizers), before.Revision)
			continue
		}
		for _, name := range finalizersOf(before) {
			collector := name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents
			if !collector && !slices.Contains(finalizersOf(after), name) {
				result.broken(evidence, "%s had the finalizer %s at revision %d, and a deletion took it away", f.key, clean(name), before.Revision)
				break
			}
		}
	}
}

// before returns what the object was like right before a deletion, if it is known.
func (f *finalizing) before(c *claim) (Object, bool) {
	revision := c.pre
	switch {
	case revision > 0:
	case f.stored:
		revision = f.storedBefore(c)
	case f.index.history.Closed && f.unseen.none():
		revision = f.closedBefore(c)
	default:
		return Object{}, false
	}
	before, ok := f.contents[revision]
	if c.how == marked && c.pre == 0 && before.Deleting {
		return before, false // an earlier deletion has marked it: this one may have done nothing
	}
	return before, ok && same(before.UID, c.uid)
}

// storedBefore returns the revision before a deletion as the watched store shows it: that
// of the change right before the one that the deletion made. It returns 0 if it is not
// clear which change that was.
func (f *finalizing) storedBefore(c *claim) int64 {
	at := c.revision
	if at == 0 {
		for _, change := range f.changes {
			if change.how == gone && change.stored && same(f.uidBefore(change.revision), c.uid) {
				if at != 0 {
					return 0 // it may be any of several
				}
				at = change.revision
			}
		}
	}
	made := f.last(at)
	if made == nil || made.revision != at || at == 0 {
		return 0
	}
	before := f.last(at - 1)
	if before == nil || before.how != set {
		return 0
	}
	return before.revision
}

func (f *finalizing) uidBefore(revision int64) string {
	before := f.last(revision - 1)
	if before == nil {
		return ""
	}
	return f.contents[before.revision].UID
}

// closedBefore returns the newest revision before a deletion, if no operation that was
// under way at the same time can have made another.
func (f *finalizing) closedBefore(c *claim) int64 {
	newest := int64(0)
	for _, o := range f.ops {
		other, ok := claimOf(o)
		if !ok || !other.changes() || other.evidence.Operation == c.evidence.Operation {
			continue
		}
		switch {
		case other.call > c.ret:
		case other.ret >= c.call, other.maybeGone, other.how == removed && same(other.uid, c.uid):
			return 0
		default:
			newest = max(newest, other.revision)
		}
	}
	if c.revision > 0 && newest >= c.revision {
		return 0
	}
	return newest
}

// tellings returns the first evidence of what the object was like at a revision: an answer
// about the object, an item of a list, or an event of a watch.
func (f *finalizing) tellings(revision int64) []Evidence {
	for _, o := range f.ops {
		if one, ok := o.one(); ok && o.outcome() == done && one.Revision == revision && o.whole() {
			return []Evidence{{Operation: o.Operation}}
		}
	}
	for _, o := range f.index.ops {
		if o.verb != verbList || o.resource != f.resource {
			continue
		}
		for _, item := range o.Objects {
			if item.Revision == revision && item.Name == f.object.object && item.Namespace == f.namespace {
				return []Evidence{{Operation: o.Operation}}
			}
		}
	}
	for _, s := range f.index.streams {
		for j := range s.Events {
			if e := &s.Events[j]; e.Object.Revision == revision && s.keyOf(e.Object) == f.key && e.Type != eventDeleted {
				return []Evidence{{Watch: s.Watch, Event: e}}
			}
		}
	}
	return nil
}
