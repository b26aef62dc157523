package checkers

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// ListWatch judges whether lists and watches agree: a list at a revision, plus the events
// of a watch from there on, must give what a list at a later revision shows. Every
// informer depends on this.
//
// It proves, by "Efficient detection of changes" and "Retrieving large results sets in
// chunks" on the Kubernetes API concepts page (KEP-365), KEP-3157 (watch list) and
// KEP-4988 (lists at a revision from the cache), that
//
//   - a watch's events, applied to its starting state, give at each later revision what a
//     list at that revision shows: the same objects, at the same revisions. The starting
//     state is a list at the revision that the watch began from, or its own initial events,
//   - a list shows no object newer than the list itself,
//   - an object that is reported twice at one revision is the same both times, in all
//     content that both reports have.
//
// Only lists that were read to the end count, and paged lists only if all pages have one
// revision. Watches and lists are compared if they use the same selectors. What the store
// had, and whether answers are new enough, is left to other checks.
type ListWatch struct{}

// Name implements Checker.
func (ListWatch) Name() string { return "list-watch" }

// Check implements Checker.
func (c ListWatch) Check(ctx context.Context, h *History) Result {
	result := Result{Check: c.Name(), Unit: "lists"}
	x := newIndex(h)
	x.sameContent(&result)
	lists := x.snapshots()
	result.Judged = len(lists)
	for _, l := range lists {
		l.newest(&result)
	}
	compared := compareLists(&result, lists)
	for _, s := range x.streams {
		if result.stopped(ctx) {
			return result
		}
		follow(&result, s, compared[s.scope.choice()])
	}
	return result
}

// snapshot is a whole list, of one page or several.
type snapshot struct {
	scope
	revision int64
	items    map[key]Object
	pages    []Evidence
}

// snapshots returns the lists that were read to their end, by revision.
func (x *index) snapshots() (all []snapshot) {
	waiting := map[string]snapshot{} // for the page of a token
	for _, o := range slices.SortedStableFunc(slices.Values(x.ops), func(a, b op) int { return cmp.Compare(a.End, b.End) }) {
		if o.verb != verbList || o.outcome() != done || o.Operation.Revision <= 0 {
			continue
		}
		l := snapshot{scope: scopeOf(o.request), revision: o.Operation.Revision, items: map[key]Object{}}
		if token := o.query.Get("continue"); token != "" {
			before, ok := waiting[token]
			if !ok || before.revision != l.revision {
				continue // not all of it is known, or it goes on at another revision
			}
			maps.Copy(l.items, before.items)
			l.pages = append(l.pages, before.pages...)
		}
		for _, item := range o.Objects {
			l.items[l.keyOf(item)] = item
		}
		l.pages = append(l.pages, Evidence{Operation: o.Operation})
		if o.Continue != "" {
			waiting[o.Continue] = l
		} else {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b snapshot) int { return cmp.Compare(a.revision, b.revision) })
	return all
}

// newest judges that no item is newer than the list.
func (l snapshot) newest(result *Result) {
	for _, k := range l.keys() {
		if item := l.items[k]; item.Revision > l.revision {
			result.broken(l.pages, "a list at revision %d shows %s at revision %d", l.revision, k, item.Revision)
		}
	}
}

func (l snapshot) keys() []key { return slices.SortedFunc(maps.Keys(l.items), compareKeys) }

// choice is what a scope chooses by, but for the namespace.
type choice struct {
	resource
	name, text string
}

func (s scope) choice() choice { return choice{s.resource, s.name, s.text} }

// within reports whether everything that s is about is also what whole is about, and
// both choose it alike.
func (s scope) within(whole scope) bool {
	return s.choice() == whole.choice() && (whole.namespace == "" || whole.namespace == s.namespace)
}

// compareLists judges that lists at one revision are alike. It returns the lists by
// what they choose.
func compareLists(result *Result, lists []snapshot) map[choice][]snapshot {
	all := map[choice][]snapshot{}
	for _, l := range lists {
		for _, other := range slices.Backward(all[l.choice()]) {
			if other.revision != l.revision {
				break
			}
			evidence := slices.Concat(other.pages, l.pages)
			if l.within(other.scope) {
				compare(result, l, other.items, evidence, nil)
				break
			}
			if other.within(l.scope) {
				compare(result, other, l.items, evidence, nil)
			}
		}
		all[l.choice()] = append(all[l.choice()], l)
	}
	return all
}

// follow judges that a watch makes of its beginning what later lists show.
func follow(result *Result, s *stream, lists []snapshot) {
	w := watching{stream: s, view: map[key]*Event{}, result: &Result{}}
	begin := w.start()
	first := w.initialEvents(begin)
	base, ok := w.base(begin, first, lists)
	if !ok || w.nameless() {
		return
	}
	reached := begin.after
	for _, e := range s.Events {
		reached = max(reached, e.Object.Revision)
	}
	made := map[key]*Event{} // what the watch has made of the objects
	events := s.Events[first:]
	evidence := append(base.pages, Evidence{Watch: s.Watch})
	for _, l := range lists {
		if l.revision < base.revision || l.revision > reached {
			continue
		}
		for ; len(events) > 0 && events[0].Object.Revision <= l.revision; events = events[1:] {
			w.apply(base.items, made, &events[0])
		}
		if l.within(s.scope) {
			compare(result, l, base.items, slices.Concat(evidence, l.pages), made)
		}
	}
}

// base returns what a watch begins with, and the revision from which on it is known
// what the watch makes of it.
func (w *watching) base(begin start, first int, lists []snapshot) (snapshot, bool) {
	base := snapshot{items: map[key]Object{}}
	if begin.initial {
		for i := range first {
			base.items[w.keyOf(w.Events[i].Object)] = w.Events[i].Object
		}
		low, high, _ := w.moments(begin, first)
		if base.revision = high; high == low+1 { // a bookmark tells it
			base.revision = low
		}
		return base, high < endless
	}
	for _, l := range lists {
		if l.revision == begin.after && begin.after > 0 && w.scope.within(l.scope) {
			base.revision, base.pages = l.revision, slices.Clone(l.pages)
			for k, item := range l.items {
				if w.covers(k) {
					base.items[k] = item
				}
			}
			return base, true
		}
	}
	return base, false
}

// apply does to the objects what an event tells.
func (w *watching) apply(items map[key]Object, made map[key]*Event, e *Event) {
	k := w.keyOf(e.Object)
	switch e.Type {
	case eventAdded, eventModified:
		items[k] = e.Object
	case eventDeleted:
		delete(items, k)
	default:
		return
	}
	made[k] = e
}

// compare judges that a list shows of its scope what is expected at its revision.
func compare(result *Result, l snapshot, expected map[key]Object, evidence []Evidence, made map[key]*Event) {
	for _, k := range (snapshot{items: expected}).keys() {
		if _, ok := l.items[k]; !ok && l.covers(k) {
			result.broken(because(evidence, made[k]), "a list at revision %d leaves out %s, which by what was told before is there", l.revision, k)
			return
		}
	}
	for _, k := range l.keys() {
		item := l.items[k]
		want, ok := expected[k]
		switch {
		case !ok:
			result.broken(because(evidence, made[k]), "a list at revision %d shows %s, which by what was told before is not there", l.revision, k)
			return
		case want.Revision != item.Revision:
			result.broken(because(evidence, made[k]), "a list at revision %d shows %s at revision %d, which by what was told before is at revision %d", l.revision, k, item.Revision, want.Revision)
			return
		}
	}
}

// because adds an event to the evidence, if there is one. The watch is the last but
// for the pages of the list.
func because(evidence []Evidence, e *Event) []Evidence {
	all := slices.Clone(evidence)
	for _, other := range evidence {
		if e != nil && other.Watch != nil {
			all = append(all, Evidence{Watch: other.Watch, Event: e})
		}
	}
	return sorted(all...)
}

// sameContent judges that an object at a revision is the same whoever is told of it.
func (x *index) sameContent(result *Result) {
	type version struct {
		key
		version  string // of the API, which content depends on
		revision int64
		kind     string
	}
	type telling struct {
		Object
		evidence Evidence
	}
	told := map[version]telling{}
	compare := func(v version, o Object, e Evidence) {
		if o.Revision <= 0 || o.Name == "" {
			return
		}
		other, ok := told[v]
		if !ok {
			told[v] = telling{o, e}
			return
		}
		if what := difference(other.Object, o); what != "" {
			result.broken(sorted(other.evidence, e), "%s at revision %d is told with two %s", v.key, o.Revision, what)
		}
	}
	for _, o := range x.ops {
		if o.outcome() != done {
			continue
		}
		for _, item := range o.Objects {
			if _, one := o.one(); one && o.whole() && o.subresource == "" || o.verb == verbList {
				compare(version{key{o.resource, item.Namespace, item.Name}, o.version, item.Revision, item.Kind}, item, Evidence{Operation: o.Operation})
			}
		}
	}
	for _, s := range x.streams {
		for j := range s.Events {
			if e := &s.Events[j]; e.Type == eventAdded || e.Type == eventModified {
				compare(version{s.keyOf(e.Object), s.scope.version, e.Object.Revision, e.Object.Kind}, e.Object, Evidence{Watch: s.Watch, Event: e})
			}
		}
	}
}

// difference names what two objects of one revision do not have in common.
func difference(a, b Object) string {
	switch {
	case !same(a.UID, b.UID):
		return "UIDs"
	case a.Labels != b.Labels:
		return "sets of labels"
	case a.Finalizers != b.Finalizers:
		return "sets of finalizers"
	case a.Deleting != b.Deleting:
		return "deletionTimestamps"
	case !same(a.Digest, b.Digest):
		return "contents: the digests " + clean(a.Digest) + " and " + clean(b.Digest)
	}
	return ""
}
