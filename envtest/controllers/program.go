package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/component"
	"snowglobe.test/internal/turn"
)

// stopTimeout bounds how long a program may take to end.
const stopTimeout = time.Minute

// Program is a controller manager or a scheduler. All its methods may be called from any
// goroutine.
type Program struct {
	cp   *envtest.ControlPlane
	name string
	// prepare builds the program. It returns what runs it until its context ends, and
	// what waits until it has seen the state of the control plane.
	prepare func(ctx context.Context, component *component.Component) (run func(context.Context), ready func(context.Context) error, err error)

	// turn is a lock on starts and stops, made of a channel and not of a mutex, so that
	// virtual time passes while a caller waits for it.
	turn turn.Lock

	mu      sync.Mutex
	current *execution // nil when it does not run
	log     string     // of the runs before
	failure error
}

// execution is one run of a program.
type execution struct {
	component *component.Component
	end       context.CancelFunc
}

// startFor starts the program for a test, and stops it when the test ends.
func (p *Program) startFor(t testing.TB) *Program {
	t.Helper()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Stop(context.WithoutCancel(t.Context())), p.Err()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("log of the %s:\n%s", p.name, p.Log())
		}
	})
	return p
}

// newProgram returns a program that does not run yet.
func newProgram(cp *envtest.ControlPlane, name string) *Program {
	return &Program{cp: cp, name: name, turn: turn.New()}
}

// Start starts the program again after Stop or Crash, and returns when it has seen the
// state of the control plane.
func (p *Program) Start(ctx context.Context) error {
	if err := p.start(ctx); err != nil {
		return fmt.Errorf("start the %s: %w", p.name, err)
	}
	return nil
}

func (p *Program) start(ctx context.Context) error {
	defer p.takeTurn()()
	if p.execution() != nil {
		return errors.New("it runs already")
	}
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	component, err := p.cp.NewComponent(p.name, func(err error) {
		p.fail(err)
		abort(err)
	})
	if err != nil {
		return err
	}
	running, end := context.WithCancel(klog.NewContext(context.Background(), component.Logger()))
	now := &execution{component, end}
	p.mu.Lock()
	p.current = now
	p.mu.Unlock()
	if err := p.run(ctx, running, now); err != nil {
		return errors.Join(err, p.release(context.WithoutCancel(ctx)))
	}
	return nil
}

// run builds the program, in a goroutine that a fatal log line or a panic may end, and
// begins to run it.
func (p *Program) run(ctx, running context.Context, now *execution) error {
	var run func(context.Context)
	var ready func(context.Context) error
	var err error
	select {
	case <-now.component.Go(func() { run, ready, err = p.prepare(running, now.component) }):
	case <-ctx.Done(): // upstream asks for some things without a context
		return context.Cause(ctx)
	}
	switch {
	case err != nil:
		return err
	case run == nil:
		return context.Cause(ctx)
	}
	now.component.Go(func() { run(running) })
	return ready(ctx)
}

// takeTurn waits until no other caller starts or stops the program. Call giveBack when done.
func (p *Program) takeTurn() (giveBack func()) {
	_ = p.turn.Take(context.Background()) // which does not end
	return p.turn.Give
}

func (p *Program) execution() *execution {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// Stop ends the program as SIGTERM would, and joins it. It does nothing if the program is
// not running.
func (p *Program) Stop(ctx context.Context) error {
	defer p.takeTurn()()
	return p.release(ctx)
}

// Crash ends the program as the sudden end of its process would: nothing more from it
// reaches an API server.
func (p *Program) Crash(ctx context.Context) error {
	defer p.takeTurn()()
	if now := p.execution(); now != nil {
		defer now.component.Crash()()
	}
	return p.release(ctx)
}

// release ends and joins the program, if it runs. The caller has the turn.
func (p *Program) release(ctx context.Context) error {
	ended := p.execution()
	if ended == nil {
		return nil
	}
	ended.end()
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err := ended.component.Wait(ctx)
	ended.component.Leave()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current, p.log = nil, p.log+ended.component.Log()
	if err != nil {
		return fmt.Errorf("stop the %s: %w", p.name, err)
	}
	return nil
}

// fail remembers the first failure that would have ended the program's process.
func (p *Program) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = fmt.Errorf("the %s crashed: %w", p.name, err)
	}
}

// Err returns why the program crashed, or nil if it has not. A call of Crash does not count.
func (p *Program) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// Log returns the program's log, across its runs.
func (p *Program) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return p.log
	}
	return p.log + p.current.component.Log()
}
