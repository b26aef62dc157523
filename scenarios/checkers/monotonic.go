package checkers

import (
	"cmp"
	"context"
	"slices"
	"sort"
)

// MonotonicReads judges the answers that one client gets one after another: the state
// that they show must not go back in time.
//
// It proves, by "Resource versions" and "Semantics for get and list" on the
// Kubernetes API concepts page, KEP-2340 (consistent reads from cache) and KEP-5504
// (comparable resource versions), that
//
//   - a read that a cache may answer (resourceVersion=0, or not older than a
//     revision) is no older than what the same server's cache told the client before,
//     in such reads or in watches,
//   - a consistent read is no older than anything that the client was told before, by any
//     server,
//   - a list is not older than the requested revision, and is at exactly that revision
//     if that was requested.
//
// A read counts only if it was sent after the other was answered. A client that asks
// for an old revision, by resourceVersionMatch=Exact, by a continue token or by a watch
// from a revision, gets what it asks for. Caches of different servers, or of
// different versions of a resource, may be at different revisions: the documentation
// calls that going back in time, but this check does not. Nor is a cached read compared
// with an earlier consistent one, or with the client's own writes: caches lag.
//
// While a server starts, it may answer from the store before its cache is filled. A
// finding from such a moment is upstream's behaviour.
type MonotonicReads struct{}

// Name implements Checker.
func (MonotonicReads) Name() string { return "monotonic-reads" }

// Check implements Checker.
func (c MonotonicReads) Check(ctx context.Context, h *History) Result {
	result := Result{Check: c.Name(), Unit: "reads"}
	x := newIndex(h)
	marks := map[mark][]sight{}
	x.eachView(func(v view) {
		for _, m := range v.marks() {
			seen := marks[m]
			if n := len(seen); n == 0 || seen[n-1].end > v.end || seen[n-1].revision < v.revision { // else it adds nothing
				marks[m] = append(seen, sight{v.end, v.revision, v.evidence})
			}
		}
	})
	for _, sights := range marks {
		rise(sights)
	}
	x.eachView(func(v view) {
		if !v.judged || ctx.Err() != nil {
			return
		}
		result.Judged++
		if before, ok := newestBefore(marks[v.compared()], v.start); ok && before.revision > v.revision {
			result.broken(sorted(before.evidence, v.evidence), "%s was told %s at revision %d, and then at revision %d", cmp.Or(v.session, "a client"), v.subject(), before.revision, v.revision)
		}
	})
	if !result.stopped(ctx) {
		x.asked(&result)
	}
	return result
}

// view is what a client was told at one moment: a list or a bookmark, about all of a
// resource, or an object.
type view struct {
	session, server string
	resource
	version  string
	object   key  // empty for all of the resource
	item     bool // the object is in a list, whose revision says more
	revision int64
	start    int64 // when the client asked
	end      int64 // when the client was told
	cached   bool  // a cache may have answered
	judged   bool  // the view must not be older than what was told before
	evidence Evidence
}

// mark names what views are compared with.
type mark struct {
	session, server string // any server if empty and not cached
	cached          bool
	resource
	version string // of a cache
	object  key
}

// sight is a revision that was seen.
type sight struct {
	end, revision int64
	evidence      Evidence
}

// marks returns the marks under which a view is remembered, for later views to be
// compared with.
func (v view) marks() []mark {
	all := []mark{{session: v.session, resource: v.resource, object: v.object}}
	if v.cached && v.server != SomeServer {
		all = append(all, mark{v.session, v.server, true, v.resource, v.version, v.object})
	}
	if v.object != (key{}) && !v.item { // a list must be as new as an object that was seen
		whole := v
		whole.object = key{}
		all = append(all, whole.marks()...)
	}
	return all
}

// compared returns the mark that a view is compared with: the view must not be older
// than what was told under it before.
func (v view) compared() mark {
	if v.cached {
		return mark{v.session, v.server, true, v.resource, v.version, v.object}
	}
	return mark{session: v.session, resource: v.resource, object: v.object}
}

func (v view) subject() string {
	if v.object != (key{}) {
		return v.object.String()
	}
	return v.resource.String()
}

// rise sorts sights by when they were told, and gives each the newest revision so far.
func rise(sights []sight) {
	slices.SortStableFunc(sights, func(a, b sight) int { return cmp.Compare(a.end, b.end) })
	for i := range sights[min(1, len(sights)):] {
		if sights[i].revision > sights[i+1].revision {
			end := sights[i+1].end
			sights[i+1] = sights[i]
			sights[i+1].end = end
		}
	}
}

// newestBefore returns the newest sight that was told by start, of sights as rise leaves
// them.
func newestBefore(sights []sight, start int64) (sight, bool) {
	later := sort.Search(len(sights), func(i int) bool { return sights[i].end > start })
	if later == 0 {
		return sight{}, false
	}
	return sights[later-1], true
}

// eachView calls f with everything that clients were told of revisions.
func (x *index) eachView(f func(view)) {
	for _, o := range x.ops {
		if o.outcome() == done && o.End > 0 {
			o.eachView(f)
		}
	}
	for _, s := range x.streams {
		s.eachView(f)
	}
}

// eachView calls f with what an operation has told.
func (o op) eachView(f func(view)) {
	fresh, _ := o.freshness()
	v := view{session: o.Session, server: o.Server, resource: o.resource, version: o.version, start: o.Start, end: o.End, evidence: Evidence{Operation: o.Operation}}
	v.cached = fresh == cached
	v.judged = (fresh == cached && o.Server != SomeServer) || fresh == consistent
	switch o.verb {
	case verbGet, verbCreate, verbUpdate, verbPatch:
		one, ok := o.one()
		v.judged = v.judged && o.verb == verbGet
		v.cached = v.cached && o.verb == verbGet
		v.object, v.revision = o.target(), one.Revision
		if ok {
			f(v)
		}
	case verbList:
		if fresh == exact || fresh == continued || o.Operation.Revision <= 0 {
			return
		}
		v.revision = o.Operation.Revision
		f(v)
		v.judged = v.judged && fresh == cached // else its revision says enough
		v.item = true
		for _, item := range o.Objects {
			v.object, v.revision = key{o.resource, item.Namespace, item.Name}, item.Revision
			f(v)
		}
	}
}

// eachView calls f with what a watch has told. Its initial events must be as new as a list.
func (s *stream) eachView(f func(view)) {
	begin := s.start()
	first := (&watching{stream: s}).initialEvents(begin)
	consistently := begin.ended && s.query.Get("resourceVersion") == ""
	for i := range s.Events {
		e := &s.Events[i]
		if e.Object.Revision <= 0 || e.Type != eventBookmark && e.Object.Name == "" {
			continue
		}
		v := view{session: s.Session, server: s.Server, resource: s.scope.resource, version: s.scope.version, revision: e.Object.Revision,
			start: s.Start, end: e.Order, cached: true, evidence: Evidence{Watch: s.Watch, Event: e}}
		if e.Type != eventBookmark {
			v.object = s.keyOf(e.Object)
		}
		ends := e.InitialEventsEnd && i == first
		v.judged = begin.initial && (i < first || ends) && (consistently || s.Server != SomeServer)
		f(v)
		if v.judged && consistently { // it must be as new as what any server has told
			v.cached = false
			f(v)
		}
	}
}

// asked judges that lists are at the revision that they were asked for.
func (x *index) asked(result *Result) {
	for _, o := range x.ops {
		fresh, revision := o.freshness()
		if o.verb != verbList || o.outcome() != done || o.Operation.Revision <= 0 || revision <= 0 {
			continue
		}
		switch told := o.Operation.Revision; {
		case fresh == exact && told != revision:
			result.broken([]Evidence{{Operation: o.Operation}}, "a list was asked for exactly at revision %d, and is at %d", revision, told)
		case fresh == cached && told < revision:
			result.broken([]Evidence{{Operation: o.Operation}}, "a list was asked for at no older than revision %d, and is at %d", revision, told)
		}
	}
}
