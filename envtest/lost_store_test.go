package envtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/internal/sample"
)

// TestStoreLost takes the store away from under a running server: it turns red,
// and stops all the same, also when upstream's clients have come to dial the store
// every two minutes only.
func TestStoreLost(t *testing.T) {
	t.Parallel()
	for _, outage := range []time.Duration{time.Minute, 10 * time.Minute} {
		t.Run(outage.String(), func(t *testing.T) {
			if outage > time.Minute {
				sample.Long(t)
			}
			envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
				require.NoError(t, cp.Store().(*memory.Store).Server().Close())
				time.Sleep(outage)
				assert.False(t, ready(t, cp), "ready without a store")
				begin := time.Now()
				assert.NoError(t, cp.Stop(t.Context()))
				assert.LessOrEqual(t, time.Since(begin), 10*time.Second, "what Stop took")
			})
		})
	}
}
