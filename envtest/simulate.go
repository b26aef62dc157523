package envtest

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"snowglobe.test/envtest/virtualtime"
)

// Simulate runs f as a test in virtual time, with a control plane in it:
// time.Sleep(time.Hour) takes one or a few seconds, in which the server does everything
// that it does in an hour, and leases, tokens and events expire. The clock begins at
// 2000-01-01T00:00:00Z, or at the time of WithClock. f must not call t.Run or t.Parallel. If
// one of its goroutines waits for something that virtual time can't bring, such as a socket,
// the test fails within five seconds of wall time.
func Simulate(t *testing.T, f func(t *testing.T, cp *ControlPlane), opts ...Option) {
	t.Helper()
	finished := false
	var cp atomic.Pointer[ControlPlane]
	err := virtualtime.Watched(virtualtime.Patience, os.Stderr, func(begun func()) {
		synctest.Test(t, func(t *testing.T) {
			begun()
			t.Cleanup(virtualtime.Grace)
			started := Start(t, opts...)
			cp.Store(started)
			f(t, started)
		})
		finished = true
	})
	switch {
	case err != nil: // the bubble is left behind, with what Start would have said at its end
		t.Error(err)
		if cp := cp.Load(); cp != nil {
			cp.logSeed(t)
		}
		t.FailNow()
	case !finished: // by t.FailNow, which ended another goroutine than this
		t.FailNow()
	}
}

// SimulateContext is Simulate for programs: it runs f with a control plane in
// virtual time and returns the error of f or of the control plane.
func SimulateContext(f func(ctx context.Context, cp *ControlPlane) error, opts ...Option) error {
	return virtualtime.Bubble(func() (err error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		cp, err := Launch(ctx, opts...)
		if err != nil {
			return err
		}
		defer func() {
			if stopErr := cp.Stop(ctx); err == nil {
				err = stopErr
			}
		}()
		return cp.withUndecided(f(ctx, cp))
	})
}
