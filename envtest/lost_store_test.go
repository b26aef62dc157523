package envtest_test

import (
	"testing"
	"time"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage/memory"
)

// TestStoreLost takes the store away from under a running server: it turns red,
// and stops all the same, also when upstream's clients have come to dial the store
// every two minutes only.
func TestStoreLost(t *testing.T) {
	for _, outage := range []time.Duration{time.Minute, 10 * time.Minute} {
		t.Run(outage.String(), func(t *testing.T) {
			envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
				if err := cp.Store().(*memory.Store).Server().Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(outage)
				if ready(t, cp) {
					t.Error("ready without a store")
				}
				begin := time.Now()
				if err := cp.Stop(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(begin); took > 10*time.Second {
					t.Errorf("Stop took %s", took)
				}
			})
		})
	}
}
