//go:build soak

package soak_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
)

// BenchmarkSimulate measures virtual time on the wall. Run it with go test and with
// snowglobe test, to see what sim mode costs.
func BenchmarkSimulate(b *testing.B) {
	simulate := func(b *testing.B, stay time.Duration) {
		b.Helper()
		err := envtest.SimulateContext(func(context.Context, *envtest.ControlPlane) error {
			time.Sleep(stay)
			return nil
		}, envtest.WithSeed(7))
		require.NoError(b, err)
	}
	simulate(b, 0) // the first boot of a process takes longer

	// One operation is a boot and a stop.
	b.Run("boot", func(b *testing.B) {
		for b.Loop() {
			simulate(b, 0)
		}
	})
	// One operation is an hour in which nothing happens, and a share of one boot.
	b.Run("hour", func(b *testing.B) {
		simulate(b, time.Duration(b.N)*time.Hour)
	})
}
