package envtest

import (
	"context"
	"fmt"
	"testing"

	"snowglobe.test/internal/serverlog"
)

// Start starts a control plane for a test and stops it when the test ends, or takes one from the
// pool and puts it back (package pool). It fails the test if the control plane does not start, crashes,
// does not stop cleanly, or has a rule that never fired. A failed test shows the warnings and errors in
// the server's log; WithLog shows more.
func Start(t testing.TB, opts ...Option) *ControlPlane {
	t.Helper()
	cp := startFor(t, opts)
	t.Cleanup(func() {
		t.Helper()
		failed, log := t.Failed(), ""
		if failed {
			log = cp.Log() // a stop has many warnings of its own
		}
		err := cp.giveBack(context.WithoutCancel(t.Context()), t)
		if err != nil {
			t.Error(err)
			log = cp.Log()
		}
		cp.logSeed(t)
		if failed || err != nil {
			t.Logf("log of the API server:\n%s", serverlog.Problems(log))
		}
	})
	return cp
}

// crashed is what Err says of a control plane that a test has stopped.
func crashed(cp *ControlPlane) error {
	if err := cp.Err(); err != nil {
		return fmt.Errorf("the API server crashed during the test: %w", err)
	}
	return nil
}

// startFor takes a control plane from the pool, or else is Launch for a test, which it fails.
func startFor(t testing.TB, opts []Option) *ControlPlane {
	t.Helper()
	cfg, err := readOptions(opts)
	if err != nil {
		t.Fatal(err)
	}
	kind, err := cfg.poolKind()
	if err != nil {
		t.Fatal(fmt.Errorf("start control plane: %w", err))
	}
	if parked := takeParked(t, kind); parked != nil {
		return parked
	}
	cp := newControlPlane(cfg)
	cp.kind = kind
	if _, err := cp.launch(t.Context()); err != nil {
		t.Error(err)
		cp.logSeed(t)
		t.FailNow()
	}
	return cp
}
