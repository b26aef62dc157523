package checkers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

// NoResurrection judges whether deleted objects stay deleted: an object is identified by
// its UID, and one with the same name that is created later has a different UID.
//
// It proves, by "Object names and IDs" in the Kubernetes documentation (a UID is unique
// over the whole lifetime of a cluster) and the API reference of ObjectMeta (a
// deletionTimestamp may not be unset), that once an object was removed
//
//   - at a known revision, no client is told of it at a later one, or sees it in a
//     list at that or a later revision,
//   - and a client was told so, none that asks for the newest state after that sees
//     it, and none changes it any more,
//
// and that an object that is being deleted stays so at all its later revisions.
//
// A removal is known from the store, from a watch that has every object, or from the
// answer to a deletion. The check does not prove that a deletion ever ends, and what was
// reported about an object without a UID is not judged. Caches and watches may still
// show the object at revisions before the removal.
type NoResurrection struct{}

// Name implements Checker.
func (NoResurrection) Name() string { return "resurrection" }

// identity is an object for its whole life.
type identity struct {
	resource
	uid string
}

// life is what is known of one object.
type life struct {
	key
	deaths []death
	seen   []sighting
}

// death says that an object was removed.
type death struct {
	revision int64 // 0 if it is not known
	known    int64 // when a client was told
	evidence Evidence
}

// sighting says that a client was told of an object.
type sighting struct {
	Object
	list     int64 // the revision of the list that shows it; 0 if it is none
	newest   bool  // it was the newest state that was asked for
	start    int64
	stored   bool // the object is what was stored at its revision
	evidence Evidence
}

// Check implements Checker.
func (c NoResurrection) Check(ctx context.Context, h *History) Result {
	result := Result{Check: c.Name(), Unit: "objects"}
	lives := newIndex(h).lives()
	ids := slices.SortedFunc(maps.Keys(lives), func(a, b identity) int {
		return cmp.Or(strings.Compare(a.resource.String(), b.resource.String()), strings.Compare(a.uid, b.uid))
	})
	for _, id := range ids {
		if result.stopped(ctx) {
			break
		}
		result.Judged++
		lives[id].judge(&result, id.uid)
		lives[id].deleting(&result, id.uid)
	}
	return result
}

// judge judges that no client sees the object after it was removed. One finding says it.
func (l *life) judge(result *Result, uid string) {
	for _, d := range l.deaths {
		for _, s := range l.seen {
			evidence := sorted(d.evidence, s.evidence)
			switch {
			case d.revision > 0 && s.Revision > d.revision:
				result.broken(evidence, "%s with UID %s was removed at revision %d, and is seen at revision %d", l.key, clean(uid), d.revision, s.Revision)
			case d.revision > 0 && s.list >= d.revision:
				result.broken(evidence, "%s with UID %s was removed at revision %d, and is in a list at revision %d", l.key, clean(uid), d.revision, s.list)
			case s.newest && s.start >= d.known && d.known > 0:
				result.broken(evidence, "%s with UID %s was removed, and is seen by who asks later for the newest state", l.key, clean(uid))
			default:
				continue
			}
			return
		}
	}
}

// deleting judges that the object's deletion is not taken back.
func (l *life) deleting(result *Result, uid string) {
	var first *sighting
	for i := range l.seen {
		s := &l.seen[i]
		if s.stored && s.Deleting && (first == nil || s.Revision < first.Revision) {
			first = s
		}
	}
	for _, s := range l.seen {
		if first != nil && s.stored && !s.Deleting && s.Revision > first.Revision {
			result.broken(sorted(first.evidence, s.evidence), "%s with UID %s was being deleted at revision %d, and is not at revision %d", l.key, clean(uid), first.Revision, s.Revision)
			return
		}
	}
}

// lives returns what is known of each object that has a UID.
func (x *index) lives() map[identity]*life {
	all := map[identity]*life{}
	of := func(k key, uid string) *life {
		id := identity{k.resource, uid}
		if all[id] == nil {
			all[id] = &life{key: k}
		}
		return all[id]
	}
	for _, o := range x.ops {
		if o.outcome() != done {
			continue
		}
		if d, uid, ok := o.death(); ok {
			l := of(o.target(), uid)
			l.deaths = append(l.deaths, d)
		}
		for _, s := range o.sightings() {
			l := of(key{o.resource, s.Namespace, s.Name}, s.UID)
			l.seen = append(l.seen, s)
		}
	}
	for _, s := range x.streams {
		first := (&watching{stream: s}).initialEvents(s.start())
		for j := range s.Events {
			e := &s.Events[j]
			evidence := Evidence{Watch: s.Watch, Event: e}
			switch {
			case e.Object.UID == "":
			case e.Type == eventDeleted && s.all():
				l := of(s.keyOf(e.Object), e.Object.UID)
				l.deaths = append(l.deaths, death{e.Object.Revision, e.Order, evidence})
			case e.Type == eventAdded || e.Type == eventModified:
				l := of(s.keyOf(e.Object), e.Object.UID)
				newest := j < first && s.start().ended && s.query.Get("resourceVersion") == ""
				l.seen = append(l.seen, sighting{Object: e.Object, newest: newest, start: s.Start, stored: true, evidence: evidence})
			}
		}
	}
	x.storeDeaths(of)
	return all
}

// death returns which object a deletion has surely removed.
func (o op) death() (d death, uid string, ok bool) {
	c, ok := claimOf(o)
	if !ok || c.how != removed || c.uid == "" {
		return d, "", false
	}
	return death{c.revision, o.End, c.evidence}, c.uid, true
}

// sightings returns the objects that an operation has shown. A deletion shows what it
// removes.
func (o op) sightings() (all []sighting) {
	s := sighting{newest: o.reads(consistent), start: o.Start, evidence: Evidence{Operation: o.Operation}}
	if o.verb == verbList {
		s.list, s.stored = o.Operation.Revision, true
		for _, s.Object = range o.Objects {
			if s.UID != "" {
				all = append(all, s)
			}
		}
		return all
	}
	one, ok := o.one()
	if !ok || one.UID == "" || o.verb == verbDelete {
		return nil
	}
	s.Object, s.stored = one, o.whole()
	s.Name, s.Namespace = o.target().object, o.target().namespace
	return []sighting{s}
}

// storeDeaths adds the removals that the store tells, of objects whose UID was seen
// since they were created.
func (x *index) storeDeaths(of func(key, string) *life) {
	for _, k := range x.keys {
		o := x.objects[k]
		uid := ""
		for _, c := range o.changes {
			content := o.contents[c.revision]
			switch {
			case c.how == gone && c.stored && uid != "":
				l := of(k, uid)
				l.deaths = append(l.deaths, death{c.revision, c.evidence.Write.Order, c.evidence})
				uid = ""
			case c.how == gone:
				uid = ""
			case content.UID != "":
				uid = content.UID
			case c.stored && c.evidence.Write.Created:
				uid = ""
			}
		}
	}
}
