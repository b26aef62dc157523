package envtest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"snowglobe.test/envtest"
)

// BenchmarkSettledWrites is what it costs that the answers to writes wait for the server: one write
// after another, as in most tests, and a thousand by ten clients beside fifty informers. overhead-% is
// of the medians of the time until all is written, or until the informers have it as well.
func BenchmarkSettledWrites(b *testing.B) {
	for name, load := range map[string]writeLoad{
		"one":   {clients: 1, writes: 100},
		"crowd": {informers: 50, clients: 10, writes: 100},
		"known": {informers: 50, clients: 10, writes: 100, known: true},
	} {
		b.Run(name, func(b *testing.B) { inTurns(b, load.on(b, true), load.on(b, false)) })
	}
}

// writeLoad is what happens at once: each client makes some config maps, one after another.
type writeLoad struct {
	informers, clients, writes int
	known                      bool // it lasts until the informers have them all
}

// on prepares the load on a new control plane. The function that it returns runs it once.
func (l writeLoad) on(b *testing.B, settled bool) func() time.Duration {
	cp := envtest.Start(b, envtest.WithSettledWrites(settled))
	config := cp.Config()
	config.QPS = -1
	client := kubernetes.NewForConfigOrDie(config)
	var unknown sync.WaitGroup // config maps, of each informer
	for range l.informers {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
		_, err := factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { unknown.Done() },
		})
		require.NoError(b, err)
		factory.StartWithContext(b.Context())
		factory.WaitForCacheSyncWithContext(b.Context())
	}
	round := 0
	return func() time.Duration {
		round++
		unknown.Add(l.informers * l.clients * l.writes)
		began := time.Now()
		l.write(b, config, round)
		written := time.Since(began)
		unknown.Wait()
		if l.known {
			return time.Since(began)
		}
		return written
	}
}

func (l writeLoad) write(b *testing.B, config *rest.Config, round int) {
	var group errgroup.Group
	for i := range l.clients {
		configMaps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
		group.Go(func() error {
			for j := range l.writes {
				name := fmt.Sprintf("flake-%d-%d-%d", round, i, j)
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
				if _, err := configMaps.Create(b.Context(), object, metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(b, group.Wait())
}
