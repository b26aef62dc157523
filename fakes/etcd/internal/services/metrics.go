package services

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	etcdversion "go.etcd.io/etcd/api/v3/version"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// metricsRegistry returns a registry with the process's metrics and those of
// etcd's that make sense in memory. It is not the process's own, because a
// process may have many servers, and an embedded etcd registers there.
func (s *Server) metricsRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		storeMetrics{s.store},
	)
	return registry
}

// storeMetrics reads the metrics of a store whenever they are asked for.
type storeMetrics struct{ store *keyspace.Store }

// Describe announces nothing: what is collected is always the same.
func (m storeMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m storeMetrics) Collect(out chan<- prometheus.Metric) {
	report := func(kind prometheus.ValueType, name, help string, value float64, labels prometheus.Labels) {
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), kind, value)
	}
	gauge := func(name, help string, value float64) { report(prometheus.GaugeValue, name, help, value, nil) }

	stats, _ := m.store.Stats() // a closed store has metrics as well
	proposals := float64(stats.RaftIndex)

	gauge("etcd_server_has_leader", "Whether or not a leader exists. 1 is existence, 0 is not.", 1)
	gauge("etcd_server_is_leader", "Whether or not this member is a leader. 1 if is, 0 otherwise.", 1)
	gauge("etcd_server_proposals_committed_total", "The total number of consensus proposals committed.", proposals)
	gauge("etcd_server_proposals_applied_total", "The total number of consensus proposals applied.", proposals)
	gauge("etcd_server_quota_backend_bytes", "Current backend storage quota size in bytes.", float64(stats.QuotaBytes))
	gauge("etcd_mvcc_db_total_size_in_bytes",
		"Total size of the underlying database physically allocated in bytes.", float64(stats.Bytes))
	gauge("etcd_mvcc_db_total_size_in_use_in_bytes",
		"Total size of the underlying database logically in use in bytes.", float64(stats.Bytes))
	gauge("etcd_debugging_mvcc_current_revision", "The current revision of store.", float64(stats.Header.Revision))
	gauge("etcd_debugging_mvcc_compact_revision",
		"The revision of the last compaction in store.", float64(stats.CompactRevision))
	gauge("etcd_debugging_mvcc_watcher_total", "Total number of watchers.", float64(stats.Watchers))
	gauge("etcd_debugging_mvcc_slow_watcher_total", "Total number of unsynced slow watchers.", float64(stats.Lagging))
	for _, one := range []struct{ name, help, label, value string }{
		{"etcd_server_version",
			"Which version is running. 1 for 'server_version' label with current version.",
			"server_version", etcdversion.Version},
		{"etcd_cluster_version",
			"Which version is running. 1 for 'cluster_version' label with current cluster version",
			"cluster_version", etcdversion.Cluster(etcdversion.Version)},
		{"etcd_server_id",
			"Server or member ID in hexadecimal format. 1 for 'server_id' label with current ID.",
			"server_id", fmt.Sprintf("%x", keyspace.MemberID)},
	} {
		report(prometheus.GaugeValue, one.name, one.help, 1, prometheus.Labels{one.label: one.value})
	}
}
