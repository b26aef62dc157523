package fault

import (
	"context"
	"fmt"
	"slices"
	"time"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/broadcast"
)

// Entry is a rule in a Set.
type Entry struct {
	set   *Set
	rule  Rule
	kinds []*PointKind // what it is about
	luck  uint64       // of the seed and the rule, for Probability
	added time.Time

	// The set's lock guards the rest.
	matched int
	fired   int
	last    Operation // at which it fired
	removed bool
	open    bool
	alarms  []*time.Timer // of a rule about no operation
	waiting []*waiter     // in the order of their arrival
	arrived broadcast.News
}

// waiter is an operation that a rule or the scheduler makes wait.
type waiter struct {
	ctx  context.Context // of At
	op   Operation
	goOn chan struct{} // closed when it may
}

func newEntry(s *Set, rule checked) *Entry {
	same := rule.Rule
	same.Optional = false
	return &Entry{
		set: s, rule: rule.Rule, kinds: rule.kinds, luck: hash(appendText(appendNumber(nil, s.config.Seed), same.String())),
		added: time.Now(),
	}
}

// Rule returns the rule.
func (e *Entry) Rule() Rule { return e.rule }

// Fired returns how often the rule has fired.
func (e *Entry) Fired() int {
	fired, _ := e.Last()
	return fired
}

// Last returns how often the rule has fired, and at what operation the last time.
func (e *Entry) Last() (fired int, op Operation) {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	return e.fired, e.last
}

// Gate returns the gate of a rule that makes operations wait, else nil.
func (e *Entry) Gate() *Gate {
	if !e.rule.Kind.waits() {
		return nil
	}
	return &Gate{e}
}

// Remove takes the rule out of the Set. What waits because of it goes on.
func (e *Entry) Remove() {
	s := e.set
	s.mu.Lock()
	if e.removed {
		s.mu.Unlock()
		return
	}
	e.removed = true
	for _, alarm := range e.alarms {
		alarm.Stop()
	}
	e.release(func(*waiter) bool { return true })
	if e.fired == 0 && !e.rule.Optional {
		s.gone = append(s.gone, e.rule)
	}
	s.replace(slices.DeleteFunc(slices.Clone(s.entries), func(other *Entry) bool { return other == e }))
	s.mu.Unlock()
	s.changed(e)
}

// takes reports whether the rule fires for an operation, and counts it; set.mu is held.
func (e *Entry) takes(kind *PointKind, op *Operation, now time.Time) bool {
	r := &e.rule
	switch {
	case e.open, r.Kind.stands(), !slices.Contains(e.kinds, kind), !r.Covers(op), !r.during(now.Sub(e.added)):
		return false
	case r.Kind == Freeze && r.At > 0 && op.Revision <= r.At:
		return false
	}
	e.matched++
	switch {
	case r.Nth != Range{} && !r.Nth.has(e.matched),
		r.Every > 0 && e.matched%r.Every != 0,
		r.Probability > 0 && !e.lucky(op),
		r.Times > 0 && e.fired >= r.Times:
		return false
	}
	e.fired, e.last = e.fired+1, *op
	return true
}

// lucky depends on seed, rule and operation alone: no other operation can shift it.
func (e *Entry) lucky(op *Operation) bool {
	return float64(op.Priority(e.luck)>>11)/(1<<53) < e.rule.Probability
}

// wait makes an operation wait as the rule says; false if it need not.
func (s *Set) wait(ctx context.Context, e *Entry, op *Operation) (bool, error) {
	w := e.enlist(ctx, op)
	if w == nil {
		return false, nil
	}
	notify := noticeOf(ctx)
	s.record(trace.Held, e, op, nil)
	notify(trace.Held, e.rule)
	err := e.outwait(ctx, w)
	s.record(trace.Released, e, op, err)
	notify(trace.Released, e.rule)
	return true, err
}

// enlist makes an operation wait; nil if the rule is gone, or its gate open, by now.
func (e *Entry) enlist(ctx context.Context, op *Operation) *waiter {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	if e.removed || e.open {
		return nil
	}
	w := &waiter{ctx, *op, make(chan struct{})}
	e.waiting = append(e.waiting, w)
	e.arrived.Tell()
	return w
}

// blame is an error that the rule has caused; the text names the rule.
func (e *Entry) blame(format string, args ...any) error {
	return &RuleError{e.rule, fmt.Errorf(format, args...)}
}

// outwait returns when a waiter may go on, or ctx ends.
func (e *Entry) outwait(ctx context.Context, w *waiter) error {
	var due <-chan time.Time
	if d, ends := e.patience(&w.op); ends {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	var err error
	select {
	case <-w.goOn:
		return nil
	case <-due:
	case <-ctx.Done():
		err = e.blame("%s was waiting because of the rule %q: %w", w.op, e.rule, context.Cause(ctx))
	}
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	if !slices.Contains(e.waiting, w) {
		return nil // it was let go at the same moment
	}
	e.waiting = slices.DeleteFunc(e.waiting, func(other *waiter) bool { return other == w })
	return err
}

// patience is the time of a delay, or what is left of a hold whose rule ends.
func (e *Entry) patience(op *Operation) (d time.Duration, ends bool) {
	switch end := e.rule.end(); {
	case e.rule.Kind != Delay:
		return end - time.Since(e.added), end > 0
	case op.Arrived.IsZero():
		return e.rule.By, true
	default:
		return time.Until(op.Arrived.Add(e.rule.By)), true
	}
}

// release lets waiters go; set.mu is held.
func (e *Entry) release(which func(*waiter) bool) (released []Operation) {
	e.waiting = slices.DeleteFunc(e.waiting, func(w *waiter) bool {
		if !which(w) {
			return false
		}
		close(w.goOn)
		released = append(released, w.op)
		return true
	})
	return released
}

type noticeKey struct{}

// WithNotice returns a context with which At calls notify when a rule begins to make
// the operation wait, trace.Held, and when that wait has ended, trace.Released.
func WithNotice(ctx context.Context, notify func(trace.Phase, Rule)) context.Context {
	return context.WithValue(ctx, noticeKey{}, notify)
}

func noticeOf(ctx context.Context) func(trace.Phase, Rule) {
	if notify, ok := ctx.Value(noticeKey{}).(func(trace.Phase, Rule)); ok {
		return notify
	}
	return func(trace.Phase, Rule) {}
}
