package stub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"snowglobe.test/internal/broadcast"
)

// Table decides how a fake answers. Rules are asked first, the newest before the
// others; the fake itself answers what no rule does. Which rules a request meets is
// decided when it arrives. A Table may be used by several goroutines at once.
type Table[Request, Answer any] struct {
	otherwise func(context.Context, Request) (Answer, error)

	mu      sync.Mutex
	rules   []*entry[Request, Answer] // oldest first
	calls   []*Call[Request, Answer]  // in the order of their arrival
	changed broadcast.News
}

// Rule says how some requests are answered. The zero value answers all as the fake
// itself would.
type Rule[Request, Answer any] struct {
	// Name tells the rule from others, in the record of calls.
	Name string
	// When says which requests it is about. Nil means all. It must not use the table.
	When func(Request) bool
	// Times is how many requests the rule applies to. 0 means any number.
	Times int
	// Gate holds the requests until it is opened. Nil holds none.
	Gate *Gate
	// Delay is how long a request waits for its answer, after the gate.
	Delay time.Duration
	// Answer makes the answer. Nil leaves that to the older rules, and at last to the
	// fake, so that a request can be held, or delayed, and still be answered as before.
	// The error is what the fake's protocol makes of one; Status and ErrBreak are
	// understood by all that speak HTTP.
	Answer func(context.Context, Request) (Answer, error)
}

// Call is a request that has arrived.
type Call[Request, Answer any] struct {
	Request  Request
	Arrived  time.Time
	Rule     string // the names of the rules it met, the newest first, as in "hold, deny"
	Done     bool   // the fields below are set
	Answered time.Time
	Answer   Answer
	Err      error
}

type entry[Request, Answer any] struct {
	Rule[Request, Answer]
	used int
}

// NewTable returns a table whose requests are answered by otherwise.
func NewTable[Request, Answer any](otherwise func(context.Context, Request) (Answer, error)) *Table[Request, Answer] {
	return &Table[Request, Answer]{otherwise: otherwise}
}

// Use adds a rule, which goes before those that are there. Calling remove takes it out again.
func (t *Table[Request, Answer]) Use(rule Rule[Request, Answer]) (remove func()) {
	added := &entry[Request, Answer]{Rule: rule}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rules = append(t.rules, added)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.rules = slices.DeleteFunc(t.rules, func(e *entry[Request, Answer]) bool { return e == added })
	}
}

// Reply answers every request in the same way, until a later rule says otherwise.
func (t *Table[Request, Answer]) Reply(answer Answer, err error) (remove func()) {
	return t.Use(Rule[Request, Answer]{
		Answer: func(context.Context, Request) (Answer, error) { return answer, err },
	})
}

// Hold holds the requests that match, nil meaning all, until the gate is opened.
func (t *Table[Request, Answer]) Hold(when func(Request) bool) *Gate {
	gate := NewGate()
	t.Use(Rule[Request, Answer]{Name: "hold", When: when, Gate: gate})
	return gate
}

// Calls returns all calls so far, in the order of their arrival.
func (t *Table[Request, Answer]) Calls() []Call[Request, Answer] {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := make([]Call[Request, Answer], len(t.calls))
	for i, call := range t.calls {
		calls[i] = *call
	}
	return calls
}

// Await waits until this number of calls has been answered, and returns all calls so far.
// If the context ends first, it returns the calls so far and the reason.
func (t *Table[Request, Answer]) Await(ctx context.Context, answered int) ([]Call[Request, Answer], error) {
	done := func(c Call[Request, Answer]) bool { return c.Done }
	return broadcast.AwaitRecords(ctx, &t.changed, t.Calls, done, answered, "requests have been answered")
}

// Serve records a request and answers it. Fakes call it, once for each request.
func (t *Table[Request, Answer]) Serve(ctx context.Context, request Request) (answer Answer, err error) {
	call, returned := &Call[Request, Answer]{Request: request, Arrived: time.Now()}, false
	defer func() {
		if !returned {
			reason := recover() // nil if the rule ended its goroutine, as t.FailNow does
			err = fmt.Errorf("a rule for this request did not return: %v", reason)
			if reason != nil {
				defer panic(reason)
			}
		}
		t.end(call, answer, err)
	}()
	answer, err = t.answer(ctx, t.begin(call), request)
	returned = true
	return answer, err
}

// Reject records a request that is not what the fake's protocol wants, and why. No rule
// is asked. Fakes call it instead of Serve.
func (t *Table[Request, Answer]) Reject(request Request, why error) {
	call := &Call[Request, Answer]{Request: request, Arrived: time.Now()}
	t.mu.Lock()
	t.calls = append(t.calls, call)
	t.mu.Unlock()
	var none Answer
	t.end(call, none, why)
}

// begin records a request and takes the rules for it.
func (t *Table[Request, Answer]) begin(call *Call[Request, Answer]) []Rule[Request, Answer] {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls = append(t.calls, call)
	t.changed.Tell()
	var rules []Rule[Request, Answer]
	var names []string
	for _, e := range slices.Backward(t.rules) {
		if e.Times > 0 && e.used == e.Times || e.When != nil && !e.When(call.Request) {
			continue
		}
		e.used++
		rules = append(rules, e.Rule)
		if e.Name != "" {
			names = append(names, e.Name)
		}
		if e.Answer != nil {
			break
		}
	}
	call.Rule = strings.Join(names, ", ")
	return rules
}

func (t *Table[Request, Answer]) answer(ctx context.Context, rules []Rule[Request, Answer], request Request) (none Answer, err error) {
	for _, rule := range rules {
		if rule.Gate != nil {
			if err := rule.Gate.wait(ctx); err != nil {
				return none, err
			}
		}
		if err := pause(ctx, rule.Delay); err != nil {
			return none, err
		}
		if rule.Answer != nil {
			return rule.Answer(ctx, request)
		}
	}
	return t.otherwise(ctx, request)
}

func pause(ctx context.Context, delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("delayed by %s: %w", delay, context.Cause(ctx))
	}
}

func (t *Table[Request, Answer]) end(call *Call[Request, Answer], answer Answer, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	call.Done, call.Answered, call.Answer, call.Err = true, time.Now(), answer, err
	t.changed.Tell()
}
