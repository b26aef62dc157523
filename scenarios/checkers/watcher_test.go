package checkers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"snowglobe.test/scenarios/checkers"
)

// watcher is a watch under way.
type watcher struct {
	index     int // in the history
	server    *server
	namespace string
	name      string
	selector  string
	initial   []checkers.Object // still to be told
	marked    bool              // a bookmark ends the initial events
	bookmarks bool
	at        int64 // everything up to this revision has been told
	ended     bool
}

// watch begins a watch in one of the ways there are.
func (w *world) watch() {
	x := &watcher{server: pick(w.Rand, w.servers), index: len(w.history.Watches), bookmarks: w.IntN(2) == 0}
	s := pick(w.Rand, w.sessions)
	uri := "/api/v1/configmaps?watch=true"
	if w.IntN(2) == 0 {
		x.namespace = "n1"
		uri = group + x.namespace + media + "?watch=true"
	}
	switch w.IntN(4) {
	case 0:
		x.selector = "app=snow"
		uri += "&labelSelector=" + x.selector
	case 1:
		x.name = "x"
		uri += "&fieldSelector=metadata.name%3Dx"
	}
	fill := false
	switch n := w.IntN(4); {
	case n == 0:
		x.marked, x.bookmarks, fill = true, true, true
		uri += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
		x.server.revision = w.revision
	case n == 1:
		uri += "&resourceVersion=0"
		fill = true
	default:
		x.at = s.list
		if x.at == 0 {
			return
		}
		uri += fmt.Sprintf("&resourceVersion=%d", x.at)
	}
	if fill {
		x.at = x.server.revision
		all := w.at(x.at)
		for _, at := range slices.Sorted(maps.Keys(all)) {
			if x.wants(all[at]) {
				x.initial = append(x.initial, all[at])
			}
		}
	}
	if x.bookmarks {
		uri += "&allowWatchBookmarks=true"
	}
	w.history.Watches = append(w.history.Watches, checkers.Watch{Session: s.name, Server: x.server.name, URI: uri, Start: w.order})
	w.watches = append(w.watches, x)
}

func (x *watcher) wants(o checkers.Object) bool {
	return chosen(o, x.namespace, x.selector) && (x.name == "" || o.Name == x.name)
}

// deliver tells the next event of a watch, false if there is none now.
func (w *world) deliver(x *watcher) bool {
	switch {
	case x.ended:
		return false
	case len(x.initial) > 0:
		w.event(x, "ADDED", x.initial[0])
		x.initial = x.initial[1:]
		return true
	case x.marked:
		x.marked = false
		w.event(x, "BOOKMARK", checkers.Object{Revision: x.at})
		events := w.history.Watches[x.index].Events
		events[len(events)-1].InitialEventsEnd = true
		return true
	case x.at < w.oldest && w.IntN(3) == 0:
		events := &w.history.Watches[x.index].Events
		*events = append(*events, checkers.Event{Order: w.next(), Type: "ERROR", Reason: "Expired"})
		x.ended = true
		return true
	}
	for x.at < x.server.revision {
		x.at++
		if w.change(x, w.log[x.at-11]) {
			return true
		}
	}
	if x.bookmarks && x.at > 10 && x.at <= x.server.revision && w.IntN(4) == 0 {
		w.event(x, "BOOKMARK", checkers.Object{Revision: x.at})
	}
	return false
}

// change tells a change, if the watch is for it.
func (w *world) change(x *watcher, e entry) bool {
	before, after := e.before != nil && x.wants(*e.before), e.after != nil && x.wants(*e.after)
	switch {
	case after && before:
		w.event(x, "MODIFIED", *e.after)
	case after:
		w.event(x, "ADDED", *e.after)
	case before:
		gone := *e.before
		gone.Revision = x.at
		w.event(x, "DELETED", gone)
	default:
		return false
	}
	return true
}

func (w *world) event(x *watcher, kind string, o checkers.Object) {
	events := &w.history.Watches[x.index].Events
	*events = append(*events, checkers.Event{Order: w.next(), Type: kind, Object: o})
}

// without returns a history in which a session's requests were not recorded.
func without(h *checkers.History, session string) *checkers.History {
	less := *h
	less.Closed = false
	less.Operations = slices.DeleteFunc(slices.Clone(h.Operations), func(op checkers.Operation) bool { return op.Session == session })
	less.Watches = slices.DeleteFunc(slices.Clone(h.Watches), func(w checkers.Watch) bool { return w.Session == session })
	return &less
}

// variants are the histories that different recorders would make of one world.
func variants(h *checkers.History) map[string]*checkers.History {
	closed := *h
	closed.Writes = nil
	complete := *without(h, "a")
	complete.Complete = true
	open := *without(h, "a")
	open.Writes = nil
	both := *h
	both.Complete = true
	return map[string]*checkers.History{
		"closed": &closed, "complete": &complete, "open": &open, "both": &both, "cut": cut(&both),
	}
}

// cut returns a history in which each watch ended sooner, as the number of the watch has it.
func cut(h *checkers.History) *checkers.History {
	c := clone(h)
	for i := range c.Watches {
		w := &c.Watches[i]
		w.Events = w.Events[:i%(len(w.Events)+1)]
	}
	return c
}

// clone copies a history, but for what is in objects.
func clone(h *checkers.History) *checkers.History {
	c := *h
	c.Operations = slices.Clone(h.Operations)
	for i := range c.Operations {
		c.Operations[i].Objects = slices.Clone(c.Operations[i].Objects)
	}
	c.Watches = slices.Clone(h.Watches)
	for i := range c.Watches {
		c.Watches[i].Events = slices.Clone(c.Watches[i].Events)
	}
	return &c
}

// text is a history as a file has it, for tests that fail.
func text(h *checkers.History) string {
	var b strings.Builder
	_ = h.Write(&b)
	return b.String()
}
