// Package pool lets the tests of a package have control planes in turn, so that Start of package envtest
// need not boot one for each of them:
//
//	func TestMain(m *testing.M) {
//		os.Exit(pool.Tests(m).Run())
//	}
//
// At the end of a test its control plane is Reset, and parked for the next test that calls Start with
// the same flags, definitions, replicas and the like. In that test these are as after a boot: all
// objects, rules, the trace and the log (which do not show the boot), webhooks, and the credentials of
// Config. What an earlier test has left behind can do nothing more: its requests and watches have
// ended, and its credentials are not valid any longer, except for client certificates.
//
// These do go on: the name of the control plane, resource versions and the metrics of the server.
// Launch starts a control plane that no other test has, for tests to which that matters.
//
// The control plane of a test is stopped, and not parked, if the test fails, if a server of it has
// crashed, was restarted or does not run, if a component is left, or if a rule has not fired, which
// fails the test as ever. A test has one of its own from the start in virtual time, in sim mode, and with
// options about the boot, the store, the log or the machine: rules, steps, a hook, an observer, a full
// trace, a seed, WithStore, WithLog, WithDialer, WithListener, WithKubeconfig, WithPKI,
// WithWebhookFlag, or flags whose value is a file.
package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// maxParked is how many control planes wait; beyond that, the one that has waited longest is stopped.
const maxParked = 8

// TestingM is what Tests needs of a *testing.M.
type TestingM interface{ Run() int }

// Tests returns tests that run as m does, with a pool. The process can have one at a time.
func Tests(m TestingM) TestingM { return tests{m} }

type tests struct{ TestingM }

// Run implements TestingM.
func (t tests) Run() int {
	if !parked.CompareAndSwap(nil, &Lot{Keep: maxParked}) {
		panic("pool: the process has one already")
	}
	code := t.TestingM.Run()
	if err := parked.Swap(nil).Close(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "the pool of control planes:", err)
		code = max(code, 1)
	}
	return code
}

// parked has the control planes that no test has at the moment; nil if there is no pool.
var parked atomic.Pointer[Lot]

// Open reports whether there is a pool. It and what follows are for this module.
func Open() bool { return parked.Load() != nil }

// Take returns a control plane that was parked, nil if there is none of that kind.
func Take(kind string) ControlPlane {
	if lot := parked.Load(); lot != nil {
		return lot.Take(kind)
	}
	return nil
}

// Park keeps a control plane, which can stand for any other of its kind, or stops it if there is no pool.
func Park(ctx context.Context, kind string, plane ControlPlane) error {
	if lot := parked.Load(); lot != nil {
		return lot.Park(ctx, kind, plane)
	}
	return plane.Stop(ctx)
}

// ControlPlane is what a pool knows of one.
type ControlPlane interface {
	Stop(ctx context.Context) error
}

// Lot is where control planes wait for the next who needs one.
type Lot struct {
	Keep int // how many; beyond that, the one that has waited longest is stopped

	mu     sync.Mutex
	places []place // the one that has waited longest is the first
}

type place struct {
	kind  string
	plane ControlPlane
}

// Take returns a control plane that was parked, nil if there is none of that kind.
func (l *Lot) Take(kind string) ControlPlane {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range slices.Backward(l.places) {
		if p.kind == kind {
			l.places = slices.Delete(l.places, i, i+1)
			return p.plane
		}
	}
	return nil
}

// Park keeps a control plane, and stops those for which there is no room any more.
func (l *Lot) Park(ctx context.Context, kind string, plane ControlPlane) error {
	l.mu.Lock()
	l.places = append(l.places, place{kind, plane})
	more := max(0, len(l.places)-l.Keep)
	left := slices.Clone(l.places[:more])
	l.places = slices.Delete(l.places, 0, more)
	l.mu.Unlock()
	return stop(ctx, left)
}

// Close stops all that wait.
func (l *Lot) Close(ctx context.Context) error {
	l.mu.Lock()
	left := l.places
	l.places = nil
	l.mu.Unlock()
	return stop(ctx, left)
}

func stop(ctx context.Context, places []place) error {
	var errs []error
	for _, p := range places {
		errs = append(errs, p.plane.Stop(ctx))
	}
	return errors.Join(errs...)
}
