package checkers_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/internal/sample"
	"snowglobe.test/scenarios/checkers"
)

// mutations make a good history a bad one, at some place that the random numbers
// choose; they return false if there is none. What they do can't be explained.
var mutations = map[string]struct {
	found  string // the check that must be among those that find it; any if empty
	mutate func(*rand.Rand, *checkers.History) bool
}{
	"drop event":          {"watch", dropEvent},
	"swap events":         {"watch", swapEvents},
	"repeat event":        {"watch", repeatEvent},
	"change event's type": {"watch", changeType},
	"bookmark too new":    {"watch", newBookmark},
	"unmarked bookmark":   {"watch", unmarkBookmark},
	"stale read":          {"linearizability", staleRead},
	"lost update":         {"linearizability", lostUpdate},
	"needless conflict":   {"linearizability", needlessConflict},
	"nothing where it is": {"linearizability", hide},
	"resurrect stale":     {"linearizability", resurrect(0)},
	"resurrect anew":      {"resurrection", resurrect(1)},
	"undelete":            {"resurrection", undelete},
	"older list":          {"monotonic-reads", olderList},
	"older object":        {"monotonic-reads", olderObject},
	"lose finalizer":      {"finalizers", loseFinalizer},
	"delete at once":      {"finalizers", deleteAtOnce},
	"leave out of list":   {"", leaveOut},
	"other content":       {"list-watch", otherContent},
	"item too new":        {"list-watch", newItem},
}

// TestMutations rejects histories that went wrong in one place.
func TestMutations(t *testing.T) {
	worlds := uint64(30)
	if sample.All() {
		worlds = 150
	}
	applied := map[string]int{}
	for seed := range worlds {
		good := *newWorld(seed).run(300)
		good.Complete = true
		for name, m := range mutations {
			h := clone(&good)
			if !m.mutate(rand.New(rand.NewPCG(seed, 1)), h) {
				continue
			}
			applied[name]++
			report := checkers.Check(t.Context(), h)
			broken := map[string]bool{}
			for _, f := range report.Findings() {
				broken[f.Check] = true
			}
			if report.Verdict() != checkers.Broken || m.found != "" && !broken[m.found] {
				t.Fatalf("seed %d, %s: want a finding of %q:\n%s\n%s", seed, name, m.found, report, text(h))
			}
		}
	}
	for name := range mutations {
		assert.Greater(t, applied[name], int(worlds)/25, name)
	}
	t.Log(applied)
}

// place is one where a mutation may be done.
type spot struct{ watch, event int }

// anyEvent returns an event that is told live, and before another that is too.
func anyEvent(r *rand.Rand, h *checkers.History, want func(w checkers.Watch, i int) bool) (*checkers.Watch, int, bool) {
	var spots []spot
	for i, w := range h.Watches {
		for j := range w.Events {
			if want(w, j) {
				spots = append(spots, spot{i, j})
			}
		}
	}
	if len(spots) == 0 {
		return nil, 0, false
	}
	s := pick(r, spots)
	return &h.Watches[s.watch], s.event, true
}

func isObject(e checkers.Event) bool { return e.Type != "BOOKMARK" && e.Type != "ERROR" }

// live reports whether an event is surely not one of the initial ones.
func live(w checkers.Watch, i int) bool {
	if !isObject(w.Events[i]) {
		return false
	}
	return strings.Contains(w.URI, "&resourceVersion=") && !strings.Contains(w.URI, "&resourceVersion=0") ||
		slices.ContainsFunc(w.Events[:i], func(e checkers.Event) bool { return e.Type != "ADDED" })
}

// dropEvent drops one that is surely missed: not the last one, of what is always told.
func dropEvent(r *rand.Rand, h *checkers.History) bool {
	w, i, ok := anyEvent(r, h, func(w checkers.Watch, i int) bool {
		return live(w, i) && !strings.Contains(w.URI, "labelSelector") && slices.ContainsFunc(w.Events[i+1:], func(e checkers.Event) bool { return e.Object.Revision > w.Events[i].Object.Revision })
	})
	if ok {
		w.Events = slices.Delete(w.Events, i, i+1)
	}
	return ok
}

func swapEvents(r *rand.Rand, h *checkers.History) bool {
	w, i, ok := anyEvent(r, h, func(w checkers.Watch, i int) bool {
		return live(w, i) && i+1 < len(w.Events) && isObject(w.Events[i+1])
	})
	if ok {
		a, b := &w.Events[i], &w.Events[i+1]
		*a, *b = *b, *a
		a.Order, b.Order = b.Order, a.Order
	}
	return ok
}

func repeatEvent(r *rand.Rand, h *checkers.History) bool {
	w, i, ok := anyEvent(r, h, live)
	if ok {
		w.Events = slices.Insert(w.Events, i+1, w.Events[i])
	}
	return ok
}

func changeType(r *rand.Rand, h *checkers.History) bool {
	w, i, ok := anyEvent(r, h, func(w checkers.Watch, i int) bool { return live(w, i) && !strings.Contains(w.URI, "Selector") })
	if ok {
		e := &w.Events[i]
		e.Type = map[string]string{"ADDED": "DELETED", "MODIFIED": "DELETED", "DELETED": "MODIFIED"}[e.Type]
	}
	return ok
}

func newBookmark(r *rand.Rand, h *checkers.History) bool {
	w, i, ok := anyEvent(r, h, func(w checkers.Watch, i int) bool {
		return w.Events[i].Type == "BOOKMARK" && slices.ContainsFunc(w.Events[i:], isObject)
	})
	if ok {
		w.Events[i].Object.Revision = w.Events[len(w.Events)-1].Object.Revision + 100
	}
	return ok
}

func unmarkBookmark(r *rand.Rand, h *checkers.History) bool {
	w, i, ok := anyEvent(r, h, func(w checkers.Watch, i int) bool { return w.Events[i].InitialEventsEnd })
	if ok {
		w.Events[i].InitialEventsEnd = false
	}
	return ok
}

// anyOperation returns an operation that is as wanted.
func anyOperation(r *rand.Rand, h *checkers.History, want func(op checkers.Operation) bool) (*checkers.Operation, bool) {
	var all []int
	for i, op := range h.Operations {
		if op.Err == "" && op.End > 0 && op.Code/100 == 2 && !op.DryRun && want(op) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return nil, false
	}
	return &h.Operations[pick(r, all)], true
}

func uriOf(o checkers.Object) string { return group + o.Namespace + media + "/" + o.Name }

// shown returns the object as some answer showed it at a revision.
func shown(h *checkers.History, uri string, revision int64, before int64) (object checkers.Object, at int64, ok bool) {
	for _, op := range h.Operations {
		for _, o := range op.Objects {
			if uriOf(o) == uri && o.Revision == revision && !op.DryRun && op.End > 0 && op.End < before && (o.Finalizers != "" || !o.Deleting) {
				return o, op.End, true
			}
		}
	}
	return object, 0, false
}

// still returns an object while it surely is at one revision, a moment then, and the
// update that ends it.
func still(r *rand.Rand, h *checkers.History) (o checkers.Object, at int64, update *checkers.Operation, ok bool) {
	update, ok = anyOperation(r, h, func(op checkers.Operation) bool {
		_, _, ok := shown(h, op.URI, op.Sent.Revision, op.Start)
		return ok && (op.Method == "PUT" || op.Method == "PATCH") && op.Objects[0].Revision > op.Sent.Revision
	})
	if ok {
		o, at, _ = shown(h, update.URI, update.Sent.Revision, update.Start)
	}
	return o, at, update, ok
}

// add adds a request that begins at a moment and is answered at once.
func add(h *checkers.History, at int64, method, uri string, op checkers.Operation) {
	op.Session, op.Method, op.URI, op.Start, op.End = "late", method, uri, at, at+1
	h.Operations = append(h.Operations, op)
}

func answer(o checkers.Object) checkers.Operation {
	return checkers.Operation{Code: 200, Objects: []checkers.Object{o}}
}

func staleRead(r *rand.Rand, h *checkers.History) bool {
	o, _, update, ok := still(r, h)
	if ok {
		add(h, update.End, "GET", uriOf(o), answer(o))
	}
	return ok
}

func lostUpdate(r *rand.Rand, h *checkers.History) bool {
	o, _, update, ok := still(r, h)
	if ok {
		again := answer(update.Objects[0])
		again.Objects[0].Revision += 1000
		again.Sent.Revision = o.Revision
		add(h, update.End, "PUT", uriOf(o), again)
	}
	return ok
}

func needlessConflict(r *rand.Rand, h *checkers.History) bool {
	o, at, _, ok := still(r, h)
	if ok {
		op := checkers.Operation{Sent: checkers.Object{Revision: o.Revision}}
		status(&op, 409, "Conflict", o.Name)
		add(h, at, "PUT", uriOf(o), op)
	}
	return ok
}

func hide(r *rand.Rand, h *checkers.History) bool {
	o, at, _, ok := still(r, h)
	if ok {
		var op checkers.Operation
		status(&op, 404, "NotFound", o.Name)
		add(h, at, "GET", uriOf(o), op)
	}
	return ok
}

func leaveOut(r *rand.Rand, h *checkers.History) bool {
	o, at, _, ok := still(r, h)
	if ok {
		add(h, at, "GET", group+o.Namespace+media, checkers.Operation{Code: 200, Revision: o.Revision})
	}
	return ok
}

// deleted returns an object and when its deletion was answered.
func deleted(r *rand.Rand, h *checkers.History) (o checkers.Object, at int64, ok bool) {
	op, ok := anyOperation(r, h, func(op checkers.Operation) bool {
		return op.Method == "DELETE" && op.About.UID != "" && slices.ContainsFunc(h.Operations, func(other checkers.Operation) bool {
			return slices.ContainsFunc(other.Objects, func(o checkers.Object) bool { return o.UID == op.About.UID && !other.DryRun && other.End > 0 })
		})
	})
	if !ok {
		return o, 0, false
	}
	for _, other := range h.Operations {
		for _, candidate := range other.Objects {
			if candidate.UID == op.About.UID && candidate.Revision > o.Revision {
				o = candidate
			}
		}
	}
	return o, op.End, true
}

func resurrect(later int64) func(*rand.Rand, *checkers.History) bool {
	return func(r *rand.Rand, h *checkers.History) bool {
		o, at, ok := deleted(r, h)
		if ok {
			o.Revision += 1000 * later
			add(h, at, "GET", uriOf(o), answer(o))
		}
		return ok
	}
}

func undelete(r *rand.Rand, h *checkers.History) bool {
	op, ok := anyOperation(r, h, func(op checkers.Operation) bool {
		return op.Method == "GET" && slices.ContainsFunc(op.Objects, func(o checkers.Object) bool { return o.Deleting })
	})
	if ok {
		o := op.Objects[slices.IndexFunc(op.Objects, func(o checkers.Object) bool { return o.Deleting })]
		o.Revision, o.Deleting = o.Revision+1000, false
		add(h, op.End, "GET", uriOf(o)+"?resourceVersion=0", answer(o))
	}
	return ok
}

func olderList(r *rand.Rand, h *checkers.History) bool {
	op, ok := anyOperation(r, h, func(op checkers.Operation) bool { return strings.HasSuffix(op.URI, "&resourceVersion=0") })
	if ok {
		h.Operations = append(h.Operations, checkers.Operation{Session: op.Session, Server: op.Server, Method: "GET", URI: op.URI,
			Start: op.End, End: op.End + 1, Code: 200, Revision: op.Revision - 1})
	}
	return ok
}

func olderObject(r *rand.Rand, h *checkers.History) bool {
	op, ok := anyOperation(r, h, func(op checkers.Operation) bool {
		return strings.HasSuffix(op.URI, "?resourceVersion=0") && len(op.Objects) == 1
	})
	if ok {
		again := *op
		again.Start, again.End, again.Objects = op.End, op.End+1, slices.Clone(op.Objects)
		again.Objects[0].Revision--
		h.Operations = append(h.Operations, again)
	}
	return ok
}

// deletion returns a deletion of what had finalizers at the revision it requires.
func deletion(r *rand.Rand, h *checkers.History) (*checkers.Operation, bool) {
	return anyOperation(r, h, func(op checkers.Operation) bool {
		o, _, ok := shown(h, op.URI, op.Sent.Revision, op.Start)
		return ok && op.Method == "DELETE" && len(op.Objects) == 1 && o.Finalizers != "" && op.Objects[0].Revision > op.Sent.Revision
	})
}

func loseFinalizer(r *rand.Rand, h *checkers.History) bool {
	op, ok := deletion(r, h)
	if ok {
		_, op.Objects[0].Finalizers, _ = strings.Cut(op.Objects[0].Finalizers, ",")
	}
	return ok
}

func deleteAtOnce(r *rand.Rand, h *checkers.History) bool {
	op, ok := deletion(r, h)
	if ok {
		uid := op.Objects[0].UID
		status(op, 200, "", op.Objects[0].Name)
		op.About.UID, op.Objects = uid, nil
	}
	return ok
}

func otherContent(r *rand.Rand, h *checkers.History) bool {
	op, ok := anyOperation(r, h, func(op checkers.Operation) bool { return op.Method == "GET" && len(op.Objects) > 0 })
	if ok {
		o := op.Objects[0]
		o.Digest = "other"
		add(h, op.End, "GET", uriOf(o)+"?resourceVersion=0", answer(o))
	}
	return ok
}

func newItem(r *rand.Rand, h *checkers.History) bool {
	op, ok := anyOperation(r, h, func(op checkers.Operation) bool { return op.Method == "GET" && len(op.Objects) > 0 })
	if ok {
		o := op.Objects[0]
		add(h, op.End, "GET", fmt.Sprintf("%s%s%s?resourceVersionMatch=Exact&resourceVersion=%d", group, o.Namespace, media, o.Revision-1),
			checkers.Operation{Code: 200, Revision: o.Revision - 1, Objects: []checkers.Object{o}})
	}
	return ok
}
