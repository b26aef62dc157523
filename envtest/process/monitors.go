package process

import etcd3metrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"

// MonitorStorage has the metrics of the calling goroutine's member tell the size of its own
// store. Upstream keeps one source of sizes in a process, that of the server made last: a server
// of a bubble would ask the store of one outside. It stays the source for strangers.
func MonitorStorage(monitor etcd3metrics.Monitor) {
	if m := current(); m != nil {
		m.monitor.Store(&monitor)
	}
	etcd3metrics.SetStorageMonitorGetter(func() ([]etcd3metrics.Monitor, error) {
		m := current()
		if m == nil {
			return []etcd3metrics.Monitor{monitor}, nil
		}
		if own := m.monitor.Load(); own != nil {
			return []etcd3metrics.Monitor{*own}, nil
		}
		return nil, nil
	})
}
