package envtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage"
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
		_, err := envtest.Launch(ctx, envtest.WithStore(storage.Shared{Backend: store}), envtest.WithObserver(func(r trace.Record) {
			if stage, ok := r.Event.(trace.Stage); ok && stage.Name == "etcd-preflight" {
				preflight = append(preflight, stage)
			}
		}))
		if err == nil {
			return errors.New("it started")
		}
		for _, want := range []string{"stage etcd-preflight", "store memory did not answer", "is it running"} {
			assert.Contains(t, err.Error(), want)
		}
		took := time.Since(begin)
		assert.GreaterOrEqual(t, took, 4*time.Second, "when the preflight gave up")
		assert.LessOrEqual(t, took, 30*time.Second, "when the preflight gave up")
		assert.True(t, len(preflight) == 2 && preflight[1].Err != nil, "the trace says of the preflight: %v", preflight)
		return nil
	})
	assert.NoError(t, err)
}
