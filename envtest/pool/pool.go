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
	if !parked.open() {
		panic("pool: the process has one already")
	}
	code := t.TestingM.Run()
	if err := parked.close(); err != nil {
		fmt.Fprintln(os.Stderr, "the pool of control planes:", err)
		code = max(code, 1)
	}
	return code
}

// ControlPlane is what a pool knows of one.
type ControlPlane interface {
	Stop(ctx context.Context) error
}

// parked are the control planes that no test has at the moment.
var parked lot

type lot struct {
	mu     sync.Mutex
	isOpen bool
	places []place // the one that has waited longest is the first
}

type place struct {
	kind  string
	plane ControlPlane
}

// Open reports whether there is a pool. It and what follows are for package envtest.
func Open() bool {
	parked.mu.Lock()
	defer parked.mu.Unlock()
	return parked.isOpen
}

// Take returns a control plane that was parked, nil if there is none of that kind.
func Take(kind string) ControlPlane {
	parked.mu.Lock()
	defer parked.mu.Unlock()
	for i, p := range slices.Backward(parked.places) {
		if p.kind == kind {
			parked.places = slices.Delete(parked.places, i, i+1)
			return p.plane
		}
	}
	return nil
}

// Park keeps a control plane, which can stand for any other of its kind, or stops it if there is no pool.
func Park(ctx context.Context, kind string, plane ControlPlane) error {
	if left := parked.park(place{kind, plane}); left != nil {
		return left.Stop(ctx)
	}
	return nil
}

// park returns the control plane for which there is no room.
func (l *lot) park(p place) (left ControlPlane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isOpen {
		return p.plane
	}
	l.places = append(l.places, p)
	if len(l.places) > maxParked {
		left = l.places[0].plane
		l.places = slices.Delete(l.places, 0, 1)
	}
	return left
}

// open reports whether the lot was not open.
func (l *lot) open() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.isOpen
	l.isOpen = true
	return !was
}

func (l *lot) close() error {
	l.mu.Lock()
	places := l.places
	l.places, l.isOpen = nil, false
	l.mu.Unlock()
	var errs []error
	for _, p := range places {
		errs = append(errs, p.plane.Stop(context.Background()))
	}
	return errors.Join(errs...)
}
