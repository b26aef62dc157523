package fault

import (
	"context"
	"errors"
	"fmt"
)

// Edge asks a Set in the name of one API server. Whatever of a server can be
// bent has its Edge; a nil Edge bends nothing. Make it with NewEdge.
type Edge struct {
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
	// Crash ends the server at once. When it returns nobody hears of the
	// server any more; it does not wait for the server's goroutines.
	Crash func(cause error)
}

// NewEdge makes the Edge of the server of that name. Of an effect that is nil
// the operation gets an error that says so.
func NewEdge(set *Set, server string, effects Effects) *Edge {
	life, end := context.WithCancelCause(context.Background())
	return &Edge{set: set, server: server, effects: effects, life: life, end: end}
}

var (
	// ErrCrashed is why an operation does not happen before which its server
	// was made to crash.
	ErrCrashed = errors.New("the API server crashed")
	errEnded   = errors.New("the API server is stopping")
)

// Active reports whether At can do anything but pass. It is for edges that
// would have to prepare something.
func (e *Edge) Active() bool { return e != nil && e.set.Active() && e.life.Err() == nil }

// Concerns is Set.Concerns for an operation of the server.
func (e *Edge) Concerns(op Operation) bool {
	if !e.Active() {
		return false
	}
	op.Server = e.server
	return e.set.Concerns(op)
}

// End lets everything go on that waits at this Edge, and whatever comes later:
// a server that stops needs its operations to end. It may be called twice.
func (e *Edge) End() {
	if e != nil {
		e.end(errEnded)
	}
}

// At is Set.At for an operation of the server. It does what concerns more than
// the operation: the Decision is none of Compact, LoseLeader and Crash.
func (e *Edge) At(ctx context.Context, describe func() Operation) (Decision, error) {
	if !e.Active() {
		return Decision{}, nil
	}
	waiting, stop := e.live(ctx)
	defer stop()
	d, err := e.set.At(waiting, func() Operation {
		op := describe()
		op.Server = e.server
		return op
	})
	switch {
	case errors.Is(err, errEnded):
		return Decision{}, nil
	case err != nil:
		return Decision{}, err
	}
	return e.affect(ctx, d)
}

// live returns a context that also ends with the Edge.
func (e *Edge) live(ctx context.Context) (context.Context, func()) {
	live, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.life, func() { cancel(errEnded) })
	return live, func() {
		stop()
		cancel(nil)
	}
}

// affect does what concerns more than the operation.
func (e *Edge) affect(ctx context.Context, d Decision) (Decision, error) {
	var effect func(context.Context) error
	switch d.Kind {
	case Compact:
		effect = e.effects.Compact
	case LoseLeader:
		effect = e.effects.LoseLeader
	case Crash:
		if e.effects.Crash != nil {
			e.effects.Crash(fmt.Errorf("%w before %s, because of the rule %q", ErrCrashed, d.op, d.entry.rule))
			return Decision{}, ErrCrashed
		}
	default:
		return d, nil
	}
	if effect == nil {
		return Decision{}, fmt.Errorf("rule %q: %s cannot be done here", d.entry.rule, d.Kind)
	}
	if err := effect(ctx); err != nil {
		return Decision{}, fmt.Errorf("rule %q: %w", d.entry.rule, err)
	}
	return Decision{}, nil
}

// Call makes a call that gets an answer, bent as the rules say.
func Call[T any](ctx context.Context, e *Edge, describe func() Operation, do func(context.Context) (T, error)) (T, error) {
	if !e.Active() {
		return do(ctx)
	}
	var none T
	d, err := e.At(ctx, describe)
	if err != nil {
		return none, err
	}
	switch d.Kind {
	case Fail:
		return none, d.Err()
	case LoseReply:
		_, _ = do(ctx)
		return none, d.Err()
	case Drop:
		return none, e.Lost(ctx)
	case Cancel:
		return none, context.Canceled
	case Duplicate:
		_, _ = do(ctx)
	}
	return do(ctx)
}

// Lost is how a caller fares whose call was dropped: it waits until it gives up,
// or the server stops.
func (e *Edge) Lost(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.life.Done():
		return errEnded
	}
}
