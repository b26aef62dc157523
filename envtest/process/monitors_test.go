package process

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	etcd3metrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// sized is the monitor of a store of this size.
type sized int64

func (s sized) Monitor(context.Context) (etcd3metrics.StorageMetrics, error) {
	return etcd3metrics.StorageMetrics{Size: int64(s)}, nil
}

func (sized) Close() error { return nil }

// TestMonitors has each member's metrics tell of its own store, and of no server that is just
// being built.
func TestMonitors(t *testing.T) {
	one, two, none := join(t, "one", Flags{}), join(t, "two", Flags{}), join(t, "none", Flags{})
	one.Do(func() { MonitorStorage(sized(1)) })
	two.Do(func() { MonitorStorage(sized(2)) })
	etcd3metrics.SetStorageMonitorGetter(func() ([]etcd3metrics.Monitor, error) { // as upstream does in the middle of a start
		t.Error("a source that upstream has set is asked")
		return nil, nil
	})
	for _, m := range []struct {
		*Member
		want []float64
	}{{one, []float64{1}}, {two, []float64{2}}, {none, nil}} {
		m.Do(func() { assert.Equal(t, m.want, storeSizes(t)) })
	}
	assert.Equal(t, []float64{2}, storeSizes(t), "of strangers")
	for _, m := range []*Member{one, two, none} {
		m.Leave()
	}
	assert.Empty(t, storeSizes(t), "when all have left")
}

// storeSizes are the sizes of stores in the metrics.
func storeSizes(t *testing.T) (sizes []float64) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "apiserver_storage_size_bytes" {
			for _, metric := range family.GetMetric() {
				sizes = append(sizes, metric.GetGauge().GetValue())
			}
		}
	}
	return sizes
}
