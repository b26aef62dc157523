package checkers

import (
	"context"
	"slices"
	"strconv"
)

// WatchGuarantees judges each watch separately, against the known writes: those of the
// store, and those that were answered with a revision.
//
// It proves, by "Efficient detection of changes", "Watch bookmarks" and "Streaming
// lists" on the Kubernetes API concepts page, KEP-956 (bookmarks) and KEP-3157 (watch
// list), that the events of a watch
//
//   - arrive in the order of their revisions, each once,
//   - are complete: a known write of a watched object is reported if the watch has
//     reported anything later. A server that can't must end the watch, or answer 410;
//   - continue from where the watch was asked to: nothing at or before that revision is
//     reported, and everything after it is,
//   - agree with bookmarks, which never go back, and after which nothing older comes,
//   - are those of the selector: an object that leaves it is DELETED, and what is not
//     selected is not reported,
//   - are of the right type: ADDED is for what was not there before, MODIFIED and DELETED
//     for what was, and DELETED for what the store has removed,
//   - begin with the state at one moment, if initial events are requested, and mark its
//     end with a bookmark. Nothing comes after an ERROR.
//
// It does not prove that an event comes at all, or soon: a watch that reports nothing is
// fine. What is selected by fields other than name and namespace, or by shard, can't be
// determined from metadata; for such a watch the check judges order and types, and that
// it keeps following what it has reported. Writes that no client was told of are not missed.
type WatchGuarantees struct{}

// Name implements Checker.
func (WatchGuarantees) Name() string { return "watch" }

// Check implements Checker.
func (c WatchGuarantees) Check(ctx context.Context, h *History) Result {
	result := Result{Check: c.Name(), Unit: "watches"}
	x := newIndex(h)
	for _, s := range x.streams {
		if result.stopped(ctx) {
			break
		}
		result.Judged++
		w := watching{stream: s, index: x, result: &result, view: map[key]*Event{}}
		w.judge()
	}
	return result
}

// watching is the check of one watch.
type watching struct {
	*stream
	index  *index
	result *Result
	view   map[key]*Event // the newest event of each object that the watch shows
	failed bool
}

// fail adds what is wrong, once for a watch: the rest often follows from it.
func (w *watching) fail(evidence []Evidence, what string, args ...any) {
	if !w.failed {
		w.result.broken(sorted(evidence...), what, args...)
	}
	w.failed = true
}

// of is the evidence of some of the watch's events.
func (w *watching) of(events ...*Event) (all []Evidence) {
	all = append(all, Evidence{Watch: w.Watch})
	for _, e := range events {
		if e != nil {
			all = append(all, Evidence{Watch: w.Watch, Event: e})
		}
	}
	return all
}

// start says how a watch begins.
type start struct {
	initial bool  // with the objects that are there
	ended   bool  // and a bookmark tells where these end
	after   int64 // the revision after which events are told; 0 if it is not known
	least   int64 // the revision that initial events must have reached
}

// start is "Semantics for watch" of the API concepts page.
func (r request) start() start {
	revision, err := strconv.ParseInt(r.query.Get("resourceVersion"), 10, 64)
	if err != nil {
		revision = 0
	}
	switch {
	case r.flag("sendInitialEvents"):
		return start{initial: true, ended: r.flag("allowWatchBookmarks"), least: revision}
	case revision > 0:
		return start{after: revision}
	}
	return start{initial: r.query.Get("sendInitialEvents") == ""}
}

// judge judges the watch from its first event to its last.
func (w *watching) judge() {
	s := w.start()
	first := w.initialEvents(s)
	w.order(s, first)
	if w.failed || w.nameless() {
		return
	}
	for i := range first {
		w.show(&w.Events[i])
	}
	base, ok := w.snapshot(s, first)
	w.types(first)
	if !w.failed && ok {
		w.complete(base, first)
	}
}

// nameless reports whether the watch tells of objects without naming them, as tables
// without objects do. No more than their order can be judged.
func (w *watching) nameless() bool {
	return slices.ContainsFunc(w.Events, func(e Event) bool {
		return e.Type != eventBookmark && e.Type != eventError && e.Object.Name == ""
	})
}

// initialEvents returns how many events tell the objects that were there when the
// watch began. If no bookmark tells it, it is the most that it can be.
func (w *watching) initialEvents(s start) int {
	if !s.initial {
		return 0
	}
	if s.ended {
		for i, e := range w.Events {
			if e.Type == eventBookmark {
				return i
			}
			if e.Type != eventAdded {
				break
			}
		}
	}
	// What comes after the initial events is newer than all of them.
	seen, newest, n := map[key]bool{}, int64(0), 0
	least := w.leastAfter()
	for i, e := range w.Events {
		if e.Type != eventAdded || seen[w.keyOf(e.Object)] {
			break
		}
		seen[w.keyOf(e.Object)] = true
		newest = max(newest, e.Object.Revision)
		if newest < least[i+1] {
			n = i + 1
		}
	}
	return n
}

// leastAfter returns for each event what is newer than the initial events, if it is not
// one of them: the least revision from there on, of bookmarks the one after.
func (w *watching) leastAfter() []int64 {
	least := make([]int64, len(w.Events)+1)
	least[len(w.Events)] = endless
	for i := len(w.Events) - 1; i >= 0; i-- {
		least[i] = least[i+1]
		revision := w.Events[i].Object.Revision
		if w.Events[i].Type == eventBookmark {
			revision++
		}
		if w.Events[i].Object.Revision > 0 {
			least[i] = min(least[i], revision)
		}
	}
	return least
}

// order judges revisions and bookmarks.
func (w *watching) order(s start, first int) {
	var newest, failed *Event
	bookmarks := 0
	for i := range w.Events {
		e := &w.Events[i]
		switch revision := e.Object.Revision; {
		case failed != nil:
			w.fail(w.of(failed, e), "a watch goes on after an ERROR")
		case e.Type == eventError:
			failed = e
			continue
		case revision <= 0:
			continue
		case e.Type != eventBookmark && s.after > 0 && revision <= s.after:
			w.fail(w.of(e), "a watch from revision %d tells what was at revision %d", s.after, revision)
		case e.Type == eventBookmark && revision < max(s.after, s.least):
			w.fail(w.of(e), "a bookmark is at revision %d, before the revision %d that was asked for", revision, max(s.after, s.least))
		case i < first:
			if newest == nil || revision > newest.Object.Revision {
				newest = e
			}
			continue
		case newest != nil && revision < newest.Object.Revision:
			w.fail(w.of(newest, e), "a watch goes back from revision %d to %d", newest.Object.Revision, revision)
		case newest != nil && revision == newest.Object.Revision && e.Type != eventBookmark:
			w.fail(w.of(newest, e), "a watch tells revision %d again, after it was told or a bookmark said that it was", revision)
		}
		if e.Type == eventBookmark {
			bookmarks++
			w.bookmark(s, e, bookmarks)
		}
		newest = e
	}
}

// bookmark judges the annotation of the nth bookmark.
func (w *watching) bookmark(s start, e *Event, n int) {
	switch ends := s.initial && s.ended && n == 1; {
	case ends && !e.InitialEventsEnd:
		w.fail(w.of(e), "the first bookmark of a watch with initial events does not say that they end")
	case !ends && e.InitialEventsEnd:
		w.fail(w.of(e), "a bookmark says that initial events end, which is not so")
	}
}

// show adds what an event tells to the view of the watch.
func (w *watching) show(e *Event) {
	k := w.keyOf(e.Object)
	switch e.Type {
	case eventDeleted:
		delete(w.view, k)
	case eventAdded, eventModified:
		w.view[k] = e
	}
}

// types judges that each event says of its object what is true.
func (w *watching) types(first int) {
	view := map[key]*Event{} // every object that was told of, also those that are gone
	for i := range w.Events {
		e := &w.Events[i]
		if e.Type == eventBookmark || e.Type == eventError || e.Object.Name == "" {
			continue
		}
		k := w.keyOf(e.Object)
		before := view[k]
		view[k] = e
		shown := before != nil && before.Type != eventDeleted
		switch {
		case !w.covers(k) || !w.selects(e.Object):
			w.fail(w.of(e), "a watch tells of an object that it was not asked for")
		case e.Type == eventAdded && shown:
			w.fail(w.of(before, e), "an object is ADDED that the watch has shown already")
		case e.Type != eventAdded && before != nil && !shown:
			w.fail(w.of(before, e), "an object is %s that the watch has said is gone", e.Type)
		case e.Type != eventAdded && before == nil && w.start().initial && i >= first:
			w.fail(w.of(e), "an object is %s that was neither among the initial events nor ADDED", e.Type)
		default:
			w.known(e)
		}
	}
}

// known compares an event with what the write at its revision has done.
func (w *watching) known(e *Event) {
	o := w.index.objects[w.keyOf(e.Object)]
	if o == nil {
		return
	}
	c := o.last(e.Object.Revision)
	told := c != nil && c.revision == e.Object.Revision
	switch {
	case !told && o.stored && e.Object.Revision <= w.index.horizon():
		w.fail(w.of(e), "an event tells of revision %d, at which the store has not changed the object", e.Object.Revision)
	case !told:
	case c.how == gone && e.Type != eventDeleted:
		w.fail(append(w.of(e), c.evidence), "an object is %s at the revision at which it was removed", e.Type)
	case c.how == set && e.Type == eventDeleted && w.all():
		w.fail(append(w.of(e), c.evidence), "an object is DELETED at revision %d, at which it was written", e.Object.Revision)
	}
}
