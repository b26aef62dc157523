package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/startup"
	"snowglobe.test/envtest"
)

// BenchmarkReset compares two ways to get rid of a thousand objects: resetting the
// control plane to its state right after boot, and stopping it and starting another. It
// takes turns with both.
func BenchmarkReset(b *testing.B) {
	for _, store := range []string{measure.StoreMemory, measure.StoreEmbedded} {
		b.Run("store="+store, func(b *testing.B) {
			launch := func() *envtest.ControlPlane {
				cp, err := envtest.Launch(b.Context(), startup.OnStore(store)...)
				require.NoError(b, err)
				return cp
			}
			cp := launch()
			var resets, restarts time.Duration
			for b.Loop() {
				thousandObjects(b, cp)
				began := time.Now()
				require.NoError(b, cp.Reset(b.Context()))
				reset := time.Now()
				require.NoError(b, cp.Stop(b.Context()))
				cp = launch()
				resets, restarts = resets+reset.Sub(began), restarts+time.Since(reset)
			}
			b.ReportMetric(resets.Seconds()*1e3/float64(b.N), "reset-ms")
			b.ReportMetric(restarts.Seconds()*1e3/float64(b.N), "stop+start-ms")
			b.ReportMetric(restarts.Seconds()/resets.Seconds(), "x-stop+start")
			b.ReportMetric(0, "ns/op") // of no interest: it covers all of the above and more
			assert.NoError(b, cp.Stop(context.WithoutCancel(b.Context())))
		})
	}
}

// thousandObjects creates a thousand objects in ten namespaces.
func thousandObjects(b *testing.B, cp *envtest.ControlPlane) {
	b.Helper()
	client := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1()
	group, ctx := errgroup.WithContext(b.Context())
	for n := range 10 {
		group.Go(func() error {
			namespace := fmt.Sprintf("team-%d", n)
			if _, err := client.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
				return err
			}
			for i := range 99 {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("thing-", i)}, Data: map[string]string{"key": "value"}}
				if _, err := client.ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(b, group.Wait())
}
