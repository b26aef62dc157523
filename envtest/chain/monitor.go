package chain

import (
	"context"

	"go.etcd.io/etcd/client/v3/kubernetes"
	etcd3metrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"

	"snowglobe.test/envtest/process"
)

// storeMonitor asks for the size of the chain's store by the chain's own client. Upstream's
// makes another client for it under a mutex, for which the next request for metrics waits, so
// that virtual time would stand still. Stores of --etcd-servers-overrides are not asked.
type storeMonitor struct{ client *kubernetes.Client }

// Monitor implements etcd3metrics.Monitor.
func (m storeMonitor) Monitor(ctx context.Context) (etcd3metrics.StorageMetrics, error) {
	endpoint := "" // a store in memory has none
	if endpoints := m.client.Endpoints(); len(endpoints) > 0 {
		endpoint = endpoints[0]
	}
	status, err := m.client.Status(ctx, endpoint)
	if err != nil {
		return etcd3metrics.StorageMetrics{}, err
	}
	return etcd3metrics.StorageMetrics{Size: status.DbSize}, nil
}

// monitorStore has metrics tell of the chain's store.
func (c *Chain) monitorStore() {
	if c.generic != nil && c.generic.monitor.client != nil {
		process.MonitorStorage(c.generic.monitor)
	}
}

// Close implements etcd3metrics.Monitor; the client is the chain's.
func (storeMonitor) Close() error { return nil }
