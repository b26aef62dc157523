package contract

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/cluster"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/internal/sample"
)

// TestContract judges stores side by side, as cases mostly wait; none leaves a goroutine behind.
// Etcd, of which the servers are not ours, and the other way into the store in memory, gRPC, are for
// -all.
func TestContract(t *testing.T) {
	// Upstream's watch cache leaves a timer of three seconds behind each read that waits for it.
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(),
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"))
	stores := map[string]opener{"memory": each(newMemory, byClient)}
	if sample.All() {
		stores["embedded"], stores["cluster"] = each(newEmbedded, byClient), each(newCluster, byClient)
		stores["endpoints"] = each(newMemory, byEndpoints)
	}
	runOn(t, stores)
}

// newMemory returns a store with a name of its own, because upstream keeps state per
// endpoint for the whole process.
func newMemory(t *testing.T) storage.Backend {
	return memory.New(strings.Map(func(r rune) rune {
		if strings.ContainsRune("/_=,", r) {
			return '-'
		}
		return r
	}, t.Name()))
}

func newEmbedded(*testing.T) storage.Backend { return embedded.New(embedded.Config{}) }

func newCluster(t *testing.T) storage.Backend {
	store, err := cluster.New(cluster.Config{})
	must(t, err)
	return store
}

func TestSnapshots(t *testing.T) {
	for name, newStore := range map[string]func(*testing.T) storage.Backend{
		"memory": newMemory, "embedded": newEmbedded, "cluster": newCluster,
	} {
		t.Run(name, func(t *testing.T) { runSnapshots(t, newStore(t).(storage.Snapshotter)) })
	}
}
