package fault

import (
	"context"
	"errors"
)

// Injector asks a Set about the operations of one API server. A nil one injects
// nothing. Make it with NewInjector.
type Injector struct {
	set     *Set
	server  string
	effects Effects
	life    context.Context
	end     context.CancelCauseFunc
}

// Effects are what rules do to the surroundings of an operation.
type Effects struct {
	// Compact makes the store forget all revisions before its present one.
	Compact func(context.Context) error
	// LoseLeader makes the store lose its leader.
	LoseLeader func(context.Context) error
	// Crash ends the server at once. When it returns, no client hears of the
	// server any more; it does not wait for the server's goroutines.
	Crash func(cause error)
}

// NewInjector returns the Injector of the server of that name. An operation
// whose rule needs a nil effect fails with an error that says so.
func NewInjector(set *Set, server string, effects Effects) *Injector {
	life, end := context.WithCancelCause(context.Background())
	return &Injector{set: set, server: server, effects: effects, life: life, end: end}
}

var (
	// ErrCrashed is the error of an operation before which a rule crashed its server.
	ErrCrashed = errors.New("the API server crashed")
	errEnded   = errors.New("the API server is stopping")
)

// Active is Set.Active, and false once the server has ended.
func (i *Injector) Active() bool { return i != nil && i.set.Active() && i.life.Err() == nil }

// concerned reports whether operations must be described to At. What a server does
// that has ended still takes time.
func (i *Injector) concerned() bool { return i.Active() || i.Latency() }

// Latency is Set.Latency.
func (i *Injector) Latency() bool { return i != nil && i.set.Latency() }

// Concerns is Set.Concerns for an operation of the server.
func (i *Injector) Concerns(op Operation) bool {
	if !i.Active() {
		return false
	}
	op.Server = i.server
	return i.set.Concerns(op)
}

// End lets everything pass, also what waits, so that the server can stop. It
// may be called twice.
func (i *Injector) End() {
	if i != nil {
		i.end(errEnded)
	}
}

// At is Set.At for the server. It does Compact, LoseLeader and Crash by itself.
func (i *Injector) At(ctx context.Context, describe func() Operation) (Decision, error) {
	switch {
	case !i.concerned():
		return Decision{}, nil
	case i.life.Err() != nil:
		i.set.takeTime(i.set.latency(i.describeAs(describe)))
		return Decision{}, nil
	}
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(i.life, func() { cancel(errEnded) })()
	d, err := i.set.At(waiting, func() Operation { return i.describeAs(describe) })
	switch {
	case errors.Is(err, errEnded):
		return Decision{}, nil
	case err != nil:
		return Decision{}, err
	}
	d, err = i.affect(waiting, d)
	if err != nil && !errors.Is(err, ErrCrashed) && errors.Is(context.Cause(waiting), errEnded) {
		return Decision{}, nil // it has ended before the effect has
	}
	return d, err
}

// describeAs describes an operation of the server.
func (i *Injector) describeAs(describe func() Operation) Operation {
	op := describe()
	op.Server = i.server
	return op
}

func (i *Injector) affect(ctx context.Context, d Decision) (Decision, error) {
	var effect func(context.Context) error
	switch d.Kind {
	case Compact:
		effect = i.effects.Compact
	case LoseLeader:
		effect = i.effects.LoseLeader
	case Crash:
		if i.effects.Crash != nil {
			cause := d.entry.blame("%w before %s, because of the rule %q", ErrCrashed, d.op, d.entry.rule)
			i.effects.Crash(cause)
			return Decision{}, cause
		}
	default:
		return d, nil
	}
	if effect == nil {
		return Decision{}, d.entry.blame("rule %q: %s cannot be done here", d.entry.rule, d.Kind)
	}
	if err := effect(ctx); err != nil {
		return Decision{}, d.entry.blame("rule %q: %w", d.entry.rule, err)
	}
	return Decision{}, nil
}

// Lost waits, as the caller of a dropped call does, until ctx or the server ends.
func (i *Injector) Lost(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-i.life.Done():
		return errEnded
	}
}
