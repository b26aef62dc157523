package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"snowglobe.test/envtest"
)

// stopTimeout bounds how long a program may take to end.
const stopTimeout = time.Minute

// Program is a controller manager or a scheduler that runs. All its methods may be called
// from any goroutine.
type Program struct {
	cp   *envtest.ControlPlane
	name string
	// prepare builds the program. It returns what runs it until its context ends, and
	// what waits until it has seen the state of the control plane.
	prepare func(ctx context.Context, client *envtest.Client) (run func(context.Context), ready func(context.Context) error, err error)

	mu      sync.Mutex
	current *execution // nil when it does not run
	log     string     // of the runs before
	failure error
}

// execution is one run of a program.
type execution struct {
	component *envtest.Component
	client    *envtest.Client
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

// Start starts the program again after Stop or Crash, and returns when it has seen the
// state of the control plane.
func (p *Program) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		return fmt.Errorf("the %s runs already", p.name)
	}
	component, err := p.cp.NewComponent(p.name, p.fail)
	if err != nil {
		return fmt.Errorf("start the %s: %w", p.name, err)
	}
	running, end := context.WithCancel(context.Background())
	p.current = &execution{component, p.cp.NewClient(), end}
	var run func(context.Context)
	var ready func(context.Context) error
	component.Do(func() { run, ready, err = p.prepare(running, p.current.client) })
	if err == nil {
		component.Go(func() { run(running) })
		err = ready(ctx)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start the %s: %w", p.name, err), p.release(context.WithoutCancel(ctx)))
	}
	return nil
}

// Stop ends the program as SIGTERM would, and joins it. One that does not run is left
// alone.
func (p *Program) Stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.release(ctx)
}

// Crash ends the program as the sudden end of its process would: nothing more of it
// reaches an API server.
func (p *Program) Crash(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return nil
	}
	defer p.current.client.Cut()()
	return p.release(ctx)
}

func (p *Program) release(ctx context.Context) error {
	if p.current == nil {
		return nil
	}
	ended := p.current
	p.current = nil
	ended.end()
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err := ended.component.Wait(ctx)
	ended.component.Leave()
	p.log += ended.component.Log()
	if err != nil {
		return fmt.Errorf("stop the %s: %w", p.name, err)
	}
	return nil
}

// fail remembers the first failure that would have ended the program's process.
func (p *Program) fail(err error) {
	go func() { // Start may hold the lock, and wait for who calls
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.failure == nil {
			p.failure = fmt.Errorf("the %s crashed: %w", p.name, err)
		}
	}()
}

// Err returns why the program crashed, nil if it has not. Crash is no such crash.
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
