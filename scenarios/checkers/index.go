package checkers

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"
)

// The types of a watch's events.
const (
	eventAdded    = "ADDED"
	eventModified = "MODIFIED"
	eventDeleted  = "DELETED"
	eventBookmark = "BOOKMARK"
	eventError    = "ERROR"
)

// index is a history in the order in which the checks want it.
type index struct {
	history *History
	ops     []op // those about resources that are not dry runs, by Start
	streams []*stream
	objects map[key]*object
	keys    []key // of objects, sorted
}

// op is an operation about a resource.
type op struct {
	*Operation
	request
}

// stream is a watch of a resource.
type stream struct {
	*Watch
	request
	scope
}

// object is what a history knows of an object, or of several that had its name.
type object struct {
	key
	ops      []op // about it alone
	changes  []change
	contents map[int64]Object // what it was like at some revisions
	// stored says that changes has every change up to the newest of the store.
	stored bool
}

// change is a write that is known to have been done.
type change struct {
	key
	revision int64
	how      effect
	evidence Evidence
	stored   bool // the store has told it
}

// effect is what a write leaves behind.
type effect int

const (
	set  effect = iota // the object exists
	gone               // it does not
	some               // either
)

// outcome is what is known of an operation by its answer.
type outcome int

const (
	done     outcome = iota // as the answer says
	refused                 // it has changed nothing, and never will
	doubtful                // it may have been done, or may be at any later time
)

func (o op) outcome() outcome {
	switch {
	case o.Err != "" || o.End == 0 || o.Code < 200 || o.Code >= 500 || o.Code == 408:
		return doubtful
	case o.Code >= 400:
		return refused
	case o.Code >= 300:
		return doubtful
	}
	return done
}

// newIndex puts a history in order.
func newIndex(h *History) *index {
	x := &index{history: h, objects: map[key]*object{}}
	for i := range h.Operations {
		o := &h.Operations[i]
		if r, ok := parseRequest(o.Method, o.URI); ok && !o.DryRun && r.query.Get("dryRun") == "" {
			x.ops = append(x.ops, op{o, r})
		}
	}
	slices.SortStableFunc(x.ops, func(a, b op) int { return cmp.Compare(a.Start, b.Start) })
	for i := range h.Watches {
		w := &h.Watches[i]
		if r, ok := parseRequest("GET", w.URI); ok {
			r.verb = verbWatch
			x.streams = append(x.streams, &stream{w, r, scopeOf(r)})
		}
	}
	for _, o := range x.ops {
		x.readAnswer(o)
	}
	for _, s := range x.streams {
		for _, e := range s.Events {
			if e.Type == eventAdded || e.Type == eventModified {
				x.content(s.keyOf(e.Object), e.Object)
			}
		}
	}
	x.readStore()
	x.keys = slices.SortedFunc(maps.Keys(x.objects), compareKeys)
	for _, k := range x.keys {
		x.objects[k].sort()
	}
	return x
}

func compareKeys(a, b key) int {
	return cmp.Or(strings.Compare(a.group, b.group), strings.Compare(a.name, b.name), strings.Compare(a.namespace, b.namespace), strings.Compare(a.object, b.object))
}

// object returns what is known of a key.
func (x *index) object(k key) *object {
	o := x.objects[k]
	if o == nil {
		o = &object{key: k, contents: map[int64]Object{}}
		x.objects[k] = o
	}
	return o
}

// content notes what an object was like. The first to tell it is believed.
func (x *index) content(k key, o Object) {
	if o.Revision <= 0 || k.object == "" {
		return
	}
	known := x.object(k)
	if _, ok := known.contents[o.Revision]; !ok {
		known.contents[o.Revision] = o
	}
}

// target returns which object a request about a single one is about: a creation sends
// its name, or is told it.
func (o op) target() key {
	k := o.request.key()
	if k.object == "" && o.verb == verbCreate {
		k.object = o.Sent.Name
		if one, ok := o.one(); ok && o.outcome() == done {
			k.object = one.Name
		}
	}
	return k
}

// one returns the object of an answer that holds the object that was asked for, in
// full or as its scale.
func (o op) one() (Object, bool) {
	if o.verb == verbList || o.verb == verbDeleteCollection || len(o.Objects) != 1 {
		return Object{}, false
	}
	one := o.Objects[0]
	return one, one.Revision > 0 && one.Name != "" && (o.request.name == "" || o.request.name == one.Name)
}

// whole reports whether the object of an answer is what was or will be stored.
func (o op) whole() bool {
	one, ok := o.one()
	switch {
	case !ok || o.subresource == "scale" || one.Kind == "Scale":
		return false
	case o.verb == verbDelete:
		return one.Finalizers != ""
	case o.verb == verbUpdate || o.verb == verbPatch:
		// The answer to who removes the last finalizer is what he sent: it is not stored.
		return !one.Deleting || one.Finalizers != ""
	}
	return true
}

// readAnswer notes what a successful answer says of objects.
func (x *index) readAnswer(o op) {
	if k := o.target(); k.object != "" {
		known := x.object(k)
		known.ops = append(known.ops, o)
	}
	if o.outcome() != done {
		return
	}
	if o.verb == verbList {
		for _, item := range o.Objects {
			x.content(key{o.resource, item.Namespace, item.Name}, item)
		}
		return
	}
	one, ok := o.one()
	if !ok {
		return
	}
	if o.whole() {
		x.content(o.target(), one)
	}
	if how, ok := o.effect(); ok {
		known := x.object(o.target())
		known.changes = append(known.changes, change{key: known.key, revision: one.Revision, how: how, evidence: Evidence{Operation: o.Operation}})
	}
}

// effect returns what a write that was answered with its object has left behind at
// the revision of the answer.
func (o op) effect() (effect, bool) {
	one, ok := o.one()
	switch {
	case !ok:
		return some, false
	case o.verb == verbCreate && o.subresource == "", o.verb == verbUpdate, o.verb == verbPatch:
		return set, true
	case o.verb != verbDelete:
		return some, false
	case one.Finalizers != "":
		return set, true
	case !one.Deleting:
		return gone, true
	}
	return some, true // gracefully, or at once
}

// sort puts the changes in order and merges what is told of one: the store's word
// counts, then an operation's that knows the effect.
func (o *object) sort() {
	slices.SortStableFunc(o.changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.revision, b.revision), compareBool(b.stored, a.stored), compareBool(a.how == some, b.how == some))
	})
	o.changes = slices.CompactFunc(o.changes, func(a, b change) bool { return a.revision == b.revision })
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// next returns the first change after a revision, nil if none is known.
func (o *object) next(revision int64) *change {
	i := o.after(revision)
	if i == len(o.changes) {
		return nil
	}
	return &o.changes[i]
}

// last returns the newest change up to a revision, nil if none is known.
func (o *object) last(revision int64) *change {
	i := o.after(revision)
	if i == 0 {
		return nil
	}
	return &o.changes[i-1]
}

// after is the place of the first change after a revision.
func (o *object) after(revision int64) int {
	return sort.Search(len(o.changes), func(i int) bool { return o.changes[i].revision > revision })
}
