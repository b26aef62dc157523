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
	cp, err := Launch(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		t.Helper()
		if err := cp.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if err := cp.Err(); err != nil {
			t.Errorf("the API server crashed during the test: %v", err)
		}
		cp.logUndecided(t)
		if t.Failed() {
			t.Logf("log of the API server:\n%s", serverlog.Problems(cp.Log()))
		}
	})
	return cp
}
