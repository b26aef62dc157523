package intercept_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/storage/intercept"
	"snowglobe.test/envtest/storage/memory"
)

// BenchmarkStoreEdge is what a connection costs when there is no rule: the time
// of a call by it, as a ratio to the call without it. Both take turns in one run.
func BenchmarkStoreEdge(b *testing.B) {
	store := memory.New("bench")
	require.NoError(b, store.Start(b.Context()))
	defer func() { require.NoError(b, store.Stop(context.Background())) }()
	plain, err := store.Client()
	require.NoError(b, err)
	defer func() { _ = plain.Close() }()
	decorated, err := store.Client()
	require.NoError(b, err)
	connection := intercept.NewConnection()
	connection.Attach(decorated, edge.NewInjector(fault.New(fault.Config{}), "bench", edge.Effects{}), nil)
	defer func() { require.NoError(b, connection.Close(context.Background())) }()
	through := connection.Client(intercept.Identity{Resource: "configmaps", Prefix: "/registry/configmaps/"})

	const key = "/registry/configmaps/default/a"
	value := make([]byte, 1000)
	revision := int64(0)
	for name, do := range map[string]func(kubernetes.Interface) error{
		"get": func(client kubernetes.Interface) error {
			_, err := client.Get(b.Context(), key, kubernetes.GetOptions{})
			return err
		},
		"put": func(client kubernetes.Interface) error {
			put, err := client.OptimisticPut(b.Context(), key, value, revision, kubernetes.PutOptions{})
			revision = put.Revision
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			const turn = 100
			var took [2]time.Duration
			clients := [2]kubernetes.Interface{plain.Kubernetes, through.Kubernetes}
			first := 0
			b.ReportAllocs()
			for b.Loop() {
				first = 1 - first
				for _, i := range []int{first, 1 - first} {
					client, begin := clients[i], time.Now()
					for range turn {
						if err := do(client); err != nil {
							b.Fatal(err)
						}
					}
					took[i] += time.Since(begin)
				}
			}
			b.ReportMetric(float64(took[0].Nanoseconds())/float64(b.N*turn), "ns/plain")
			b.ReportMetric(float64(took[1].Nanoseconds())/float64(b.N*turn), "ns/decorated")
			b.ReportMetric(float64(took[1])/float64(took[0]), "decorated/plain")
		})
	}
}
