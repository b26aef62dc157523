package envtest

import (
	"context"
	"testing"

	"snowglobe.test/envtest/clock"
)

// Start starts a control plane for a test and stops it when the test ends. It
// fails the test if the control plane does not start, crashes, or does not stop
// cleanly. The API server's log is shown when the test fails, or with -v.
func Start(t testing.TB, opts ...Option) *ControlPlane {
	t.Helper()
	cp, err := Launch(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if err := cp.Err(); err != nil {
			t.Errorf("the API server crashed during the test: %v", err)
		}
		if t.Failed() || testing.Verbose() {
			t.Logf("log of the API server:\n%s", cp.Log())
		}
	})
	return cp
}

// Simulate runs f as a test in virtual time, with a control plane that lives in
// it too: time.Sleep(time.Hour) takes no time, and leases, tokens and events
// expire on the way. Inside f neither t.Run nor t.Parallel may be called.
func Simulate(t *testing.T, f func(t *testing.T, cp *ControlPlane), opts ...Option) {
	t.Helper()
	simulate(t, func(t *testing.T) { f(t, Start(t, opts...)) })
}

// SimulateContext is Simulate for programs: it runs f with a control plane in
// virtual time and returns what f, or the control plane, failed with.
func SimulateContext(f func(ctx context.Context, cp *ControlPlane) error, opts ...Option) error {
	return clock.Bubble(func() (err error) {
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
