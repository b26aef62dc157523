package process

import (
	"sync"
	"sync/atomic"
	_ "unsafe" // for linkname

	etcd3metrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/component-base/metrics"
)

// monitorCollector is upstream's collector of the size of a store, by its fields.
type monitorCollector struct {
	metrics.BaseStableCollector

	//lint:ignore U1000 upstream's methods use it
	mutex sync.Mutex

	//lint:ignore U1000 upstream's methods use it
	monitorGetter func() ([]etcd3metrics.Monitor, error)
}

// storageMonitor is upstream's collector, on which each of its servers sets its source of sizes
// while it is built.
//
//go:linkname storageMonitor k8s.io/apiserver/pkg/storage/etcd3/metrics.storageMonitor
var storageMonitor *monitorCollector

// strangersMonitor tells goroutines of no member the size of the newest member's store.
var strangersMonitor atomic.Pointer[etcd3metrics.Monitor]

// takeOverMonitors makes the registered collector ask the store of the member whose metrics are
// collected. Upstream has one source of sizes in a process, that of the server built last, so a
// server in a bubble might ask, through a socket, the store of a server outside. The servers'
// own sources go to a second collector, which is not registered.
func takeOverMonitors() {
	etcd3metrics.Register()
	etcd3metrics.SetStorageMonitorGetter(currentMonitors)
	registered := storageMonitor
	storageMonitor = &monitorCollector{}
	onGiveBack(func() {
		storageMonitor = registered
		strangersMonitor.Store(nil)
		etcd3metrics.SetStorageMonitorGetter(func() ([]etcd3metrics.Monitor, error) { return nil, nil })
	})
}

func currentMonitors() ([]etcd3metrics.Monitor, error) {
	from := &strangersMonitor
	if m := current(); m != nil {
		from = &m.monitor
	}
	if monitor := from.Load(); monitor != nil {
		return []etcd3metrics.Monitor{*monitor}, nil
	}
	return nil, nil
}

// MonitorStorage has the metrics of the calling goroutine's member tell the size of its own
// store, and those of strangers too, until another member says so.
func MonitorStorage(monitor etcd3metrics.Monitor) {
	if m := current(); m != nil {
		m.monitor.Store(&monitor)
	}
	strangersMonitor.Store(&monitor)
}
