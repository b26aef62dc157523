package envtest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

// BenchmarkEdges is what it costs that everything can be bent while no rule bends
// it: boots and requests with the edges and with the edges left out, in turns.
// overhead-% is of the medians.
func BenchmarkEdges(b *testing.B) {
	b.Run("boot", func(b *testing.B) {
		boot := func(opts ...envtest.Option) time.Duration {
			began := time.Now()
			cp, err := envtest.Launch(b.Context(), opts...)
			require.NoError(b, err)
			took := time.Since(began)
			require.NoError(b, cp.Stop(b.Context()))
			return took
		}
		boot() // the first one of a process pays for all
		inTurns(b, func() time.Duration { return boot() }, func() time.Duration { return boot(envtest.WithoutInjectors()) })
	})
	b.Run("requests", func(b *testing.B) {
		with, without := envtest.Start(b), envtest.Start(b, envtest.WithoutInjectors())
		inTurns(b, func() time.Duration { return requests(b, with) }, func() time.Duration { return requests(b, without) })
	})
}

// inTurns measures the two one after the other, each first as often as the other.
func inTurns(b *testing.B, with, without func() time.Duration) {
	var times [2][]time.Duration
	turn := 0
	for b.Loop() {
		for i := range 2 {
			which := (turn + i) % 2
			times[which] = append(times[which], []func() time.Duration{with, without}[which]())
		}
		turn++
	}
	on, off := median(times[0]), median(times[1])
	b.ReportMetric(float64(on.Nanoseconds()), "with-ns")
	b.ReportMetric(float64(off.Nanoseconds()), "without-ns")
	b.ReportMetric(100*(float64(on)/float64(off)-1), "overhead-%")
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// requests makes 50 objects, gets and lists them, and deletes them.
func requests(b *testing.B, cp *envtest.ControlPlane) time.Duration {
	ctx := context.Background()
	configMaps := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default")
	began := time.Now()
	for i := range 50 {
		name := "bench-" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		_, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(b, err)
		_, err = configMaps.Get(ctx, name, metav1.GetOptions{})
		require.NoError(b, err)
		require.NoError(b, configMaps.Delete(ctx, name, metav1.DeleteOptions{}))
	}
	return time.Since(began)
}
