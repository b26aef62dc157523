package envtest

import (
	"context"
	"testing"
	"testing/synctest"

	"snowglobe.test/envtest/virtualtime"
)

// Simulate runs f as a test in virtual time, with a control plane in it:
// time.Sleep(time.Hour) takes no time, and leases, tokens and events expire on the
// way. f must call neither t.Run nor t.Parallel.
func Simulate(t *testing.T, f func(t *testing.T, cp *ControlPlane), opts ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, Start(t, opts...)) })
}

// SimulateContext is Simulate for programs: it runs f with a control plane in
// virtual time and returns what f, or the control plane, failed with.
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
		return f(ctx, cp)
	})
}
