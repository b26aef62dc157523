package checkers

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// Linearizability judges requests about single objects: create, get, update, patch
// and delete, with their preconditions, and what consistent lists say about each object.
// For each object there must be an order of all of them that explains every answer, and
// in which no request comes before one that had ended when it was sent.
//
// It proves that no client was shown an outdated state (a get without a resourceVersion
// returns the newest, see "Resource versions" and "Semantics for get and list" on the
// Kubernetes API concepts page; KEP-2340, consistent reads from cache), that no write
// was lost between a revision that an update required and the one it made ("Concurrency
// Control and Consistency" in the API conventions), that a 409 or 404 had a reason, and
// that revisions of an object grow (KEP-5504, comparable resource versions).
//
// A request that timed out, broke, or was answered with 5xx may or may not have taken
// effect, at any later time. So may a successful one that does not tell what it did,
// such as a deletion of a collection. In a history that is not Closed, and whose store
// was not watched, unexplained changes are an unknown client's: a lost write may then
// look like one that was undone.
//
// It does not judge reads that a cache may answer (MonotonicReads does), the order of
// writes to different objects, the content of objects, or what other requests said
// beyond whether and at which revision an object exists. Dry runs are left out.
type Linearizability struct {
	// MaxSteps is how many steps the search for an order may take for each object; 0
	// means DefaultMaxSteps. If it would take more, the verdict is Unknown. A limit in
	// steps gives the same verdict on every machine.
	MaxSteps int
}

// DefaultMaxSteps lets the search go on for a few seconds.
const DefaultMaxSteps = 1 << 20

// maxSearchBytes limits the memory of a search.
const maxSearchBytes = 256 << 20

// Name implements Checker.
func (Linearizability) Name() string { return "linearizability" }

// Check implements Checker.
func (l Linearizability) Check(ctx context.Context, h *History) Result {
	result := Result{Check: l.Name(), Unit: "objects"}
	x := newIndex(h)
	listings, bounds, wides, horizon := x.listings(), x.bounds(), x.wides(), x.horizon()
	for _, k := range x.keys {
		if result.stopped(ctx) {
			break
		}
		object := x.objects[k]
		m := &model{object: object, horizon: horizon}
		switch {
		case object.stored:
			m.regime = watched
		case h.Closed:
			m.regime, m.spares = closed, sparesOf(k, object.ops, wides)
		}
		claims := claimsOf(k, object.ops, listings[k.resource])
		if len(claims) == 0 {
			continue
		}
		if m.regime == watched {
			claims = append(claims, bounds.stored(object, claims)...)
		}
		result.Judged++
		l.judge(ctx, &result, m, essential(claims))
	}
	return result
}

// claimsOf returns what is claimed about one object.
func claimsOf(k key, ops []op, listings []listing) (claims []*claim) {
	for _, o := range ops {
		if c, ok := claimOf(o); ok {
			claims = append(claims, c)
		}
	}
	for _, l := range listings {
		if c, ok := l.claim(k); ok {
			claims = append(claims, c)
		}
	}
	return claims
}

// judge searches for an order of the claims about one object.
func (l Linearizability) judge(ctx context.Context, result *Result, m *model, claims []*claim) {
	s := &search{ctx: ctx, limit: l.MaxSteps}
	if s.limit <= 0 {
		s.limit = DefaultMaxSteps
	}
	switch s.order(m, claims) {
	case Unknown:
		if !result.stopped(ctx) {
			result.add(Unknown, nil, "%s: no order of %d operations was found in %d steps; with a larger MaxSteps there may be one", m.object.key, len(claims), s.limit)
		}
	case Broken:
		core := s.core(m, claims)
		var evidence []Evidence
		for _, c := range core {
			evidence = append(evidence, c.evidence)
		}
		result.broken(sorted(evidence...), "%s: %s", m.object.key, m.complaint(len(core)))
	}
}

// complaint says what is wrong with claims that have no order.
func (m *model) complaint(n int) string {
	what := "these operations have no order that explains all their answers"
	if n == 1 {
		what = "nothing explains the answer to this operation"
	}
	switch m.regime {
	case closed:
		return what + ", and no other client has changed the object"
	case watched:
		return what + " by the changes that the store has had"
	}
	return what + ", whatever others have done"
}

// search looks for orders of claims, in a limited number of steps.
type search struct {
	ctx     context.Context
	limit   int // steps for one order
	steps   int
	stopped bool
}

// order says whether there is an order of the claims: Holds, Broken, or Unknown.
func (s *search) order(m *model, claims []*claim) Verdict {
	s.steps, s.stopped = 0, false
	operations := make([]porcupine.Operation, len(claims))
	for i, c := range claims {
		operations[i] = porcupine.Operation{Input: c, Call: c.call, Return: c.ret}
	}
	// Porcupine keeps the set of what is in order for each step that it takes.
	maxKept := maxSearchBytes / (len(claims)/8 + 64)
	kept := 0
	ok := porcupine.CheckOperations(porcupine.Model{
		Init: func() any { return m.initial() },
		Step: func(before, input, _ any) (bool, any) {
			if s.spend(kept > maxKept) {
				return false, before
			}
			after := each(before.([]state), func(one state) []state { return m.step(one, input.(*claim)) })
			if len(after) > 0 {
				kept++
			}
			return len(after) > 0, after
		},
		Equal: func(a, b any) bool { return equal(a.([]state), b.([]state)) },
	}, operations)
	switch {
	case ok:
		return Holds
	case s.stopped:
		return Unknown
	}
	return Broken
}

// spend reports whether the search must end. Then no step leads anywhere, and it does.
func (s *search) spend(full bool) bool {
	const askEvery = 1024 // how often ctx is asked
	s.steps++
	s.stopped = s.stopped || full || s.steps > s.limit || s.steps%askEvery == 0 && s.ctx.Err() != nil
	return s.stopped
}

// equal compares sets of states without repetitions.
func equal(a, b []state) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(s state) bool { return !slices.Contains(b, s) })
}

// bounds says between which moments the store had a revision, by what is known of
// the revisions around it: they are made in order.
type bounds struct {
	revisions []int64
	calls     []int64 // no earlier than the first to be sure of this or an earlier one
	returns   []int64 // no later than the first to know this or a later one
}

// bounds returns when the revisions of a watched store were made.
func (x *index) bounds() bounds {
	calls, returns := map[int64]int64{}, map[int64]int64{}
	note := func(revision, call, ret int64) {
		calls[revision] = max(calls[revision], call)
		if known, ok := returns[revision]; !ok || ret < known {
			returns[revision] = ret
		}
	}
	for _, w := range x.history.Writes {
		note(w.Revision, 0, returnOf(w.Order))
	}
	for _, o := range x.ops {
		object := x.objects[o.target()]
		if c, ok := claimOf(o); ok && c.sure() && object != nil && object.stored {
			note(c.revision, c.call, c.ret)
		}
	}
	b := bounds{revisions: slices.Sorted(maps.Keys(calls))}
	for i, revision := range b.revisions {
		b.calls, b.returns = append(b.calls, calls[revision]), append(b.returns, returns[revision])
		if i > 0 {
			b.calls[i] = max(b.calls[i], b.calls[i-1])
		}
	}
	earliest := int64(math.MaxInt64)
	for i := range slices.Backward(b.returns) {
		earliest = min(earliest, b.returns[i])
		b.returns[i] = earliest
	}
	return b
}

// stored returns the changes that the store has told and that no claim is sure to
// have made.
func (b bounds) stored(o *object, claims []*claim) (all []*claim) {
	made := map[int64]bool{}
	for _, c := range claims {
		made[c.revision] = made[c.revision] || c.sure()
	}
	for _, c := range o.changes {
		i, found := slices.BinarySearch(b.revisions, c.revision)
		if found && c.stored && !made[c.revision] {
			all = append(all, &claim{how: stored, revision: c.revision, call: b.calls[i], ret: b.returns[i], evidence: c.evidence})
		}
	}
	return all
}
