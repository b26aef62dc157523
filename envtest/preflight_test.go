package envtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
)

// TestPreflight starts on a store that has gone away: the preflight asks again
// for some seconds, then says so.
func TestPreflight(t *testing.T) {
	err := virtualtime.Bubble(func() error {
		ctx := context.Background()
		store := memory.New("gone")
		if err := store.Start(ctx); err != nil {
			return err
		}
		defer func() { _ = store.Stop(ctx) }()
		if err := store.Server().Close(); err != nil {
			return err
		}
		begin := time.Now()
		var preflight []trace.Stage
		_, err := envtest.Launch(ctx, envtest.WithSharedStore(store), envtest.WithObserver(func(r trace.Record) {
			if stage, ok := r.Event.(trace.Stage); ok && stage.Name == "etcd-preflight" {
				preflight = append(preflight, stage)
			}
		}))
		if err == nil {
			return errors.New("it started")
		}
		for _, want := range []string{"stage etcd-preflight", "store memory did not answer", "is it running"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		}
		if took := time.Since(begin); took < 4*time.Second || took > 30*time.Second {
			t.Errorf("the preflight gave up after %s", took)
		}
		if len(preflight) != 2 || preflight[1].Err == nil {
			t.Errorf("the trace says of the preflight: %v", preflight)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
