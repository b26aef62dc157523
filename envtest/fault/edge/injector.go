package edge

import (
	"context"
	"errors"

	"snowglobe.test/envtest/fault"
)

// Injector asks a fault.Set about the operations of one API server. A nil one injects
// nothing. Make it with NewInjector.
type Injector struct {
	set     *fault.Set
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
func NewInjector(set *fault.Set, server string, effects Effects) *Injector {
	life, end := context.WithCancelCause(context.Background())
	return &Injector{set: set, server: server, effects: effects, life: life, end: end}
}

var errEnded = errors.New("the API server is stopping")

// Active is fault.Set.Active, and false once the server has ended.
func (i *Injector) Active() bool { return i != nil && i.set.Active() && i.life.Err() == nil }

// Concerned reports whether Execute wants to hear of requests and calls of the store:
// there may be rules, or operations take time, also those of a server that has ended.
func (i *Injector) Concerned() bool { return i != nil && (i.Active() || i.set.Latency() != nil) }

// Concerns is fault.Set.Concerns for an operation of the server.
func (i *Injector) Concerns(op fault.Operation) bool {
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

// Lost waits, as the caller of a dropped call does, until ctx or the server ends.
func (i *Injector) Lost(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-i.life.Done():
		return errEnded
	}
}

// OnPartition is fault.Set.OnPartition for the path between the server and its store, until
// the Injector ends.
func (i *Injector) OnPartition(tell func(partitioned bool)) (stop func()) {
	if i == nil {
		return func() {}
	}
	return i.set.OnPartition(i.life, fault.Operation{Point: fault.StorePath, Server: i.server}, tell)
}

// OnFire is fault.Set.OnFire for a signal of the server, until the Injector ends.
func (i *Injector) OnFire(signal fault.Operation, fire func()) {
	if i != nil {
		signal.Server = i.server
		i.set.OnFire(i.life, signal, fire)
	}
}
