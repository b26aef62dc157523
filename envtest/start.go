package envtest

import (
	"context"
	"testing"

	"snowglobe.test/internal/serverlog"
)

// Start starts a control plane for a test and stops it when the test ends. It fails
// the test if the control plane does not start, crashes, does not stop cleanly, or
// has a rule that never fired. A failed test shows the warnings and errors in the
// server's log; WithLog shows more.
func Start(t testing.TB, opts ...Option) *ControlPlane {
	t.Helper()
	cp := startFor(t, opts)
	t.Cleanup(func() {
		t.Helper()
		if err := cp.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if err := cp.Err(); err != nil {
			t.Errorf("the API server crashed during the test: %v", err)
		}
		cp.logSeed(t)
		if t.Failed() {
			t.Logf("log of the API server:\n%s", serverlog.Problems(cp.Log()))
		}
	})
	return cp
}

// startFor is Launch for a test, which it fails.
func startFor(t testing.TB, opts []Option) *ControlPlane {
	t.Helper()
	cp, err := prepare(opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cp.launch(t.Context()); err != nil {
		t.Error(err)
		cp.logSeed(t)
		t.FailNow()
	}
	return cp
}
