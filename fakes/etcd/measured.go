package etcd

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// measured are the metrics of a server that are counted as things happen.
type measured struct {
	rangeSeconds                 *prometheus.HistogramVec
	healthSuccess, healthFailure prometheus.Counter
	check                        *prometheus.GaugeVec
	checks                       *prometheus.CounterVec
}

func newMeasured() *measured {
	name := func(name string) string { return prometheus.BuildFQName("etcd", "server", name) }
	return &measured{
		rangeSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name("range_duration_seconds"), Help: "The latency distributions of txn.Range",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 20), // up to 52 seconds
		}, []string{"success"}),
		healthSuccess: prometheus.NewCounter(prometheus.CounterOpts{Name: name("health_success"), Help: "The total number of successful health checks"}),
		healthFailure: prometheus.NewCounter(prometheus.CounterOpts{Name: name("health_failures"), Help: "The total number of failed health checks"}),
		check:         prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name("healthcheck"), Help: "The result of each kind of healthcheck."}, []string{"type", "name"}),
		checks:        prometheus.NewCounterVec(prometheus.CounterOpts{Name: name("healthchecks_total"), Help: "The total number of each kind of healthcheck."}, []string{"type", "name", "status"}),
	}
}

// collectors are what a registry takes.
func (m *measured) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.rangeSeconds, m.healthSuccess, m.healthFailure, m.check, m.checks}
}

func (m *measured) ranged(began time.Time, err error) {
	m.rangeSeconds.WithLabelValues(strconv.FormatBool(err == nil)).Observe(time.Since(began).Seconds())
}

// health notes an answer of /health.
func (m *measured) health(ok bool) {
	if ok {
		m.healthSuccess.Inc()
	} else {
		m.healthFailure.Inc()
	}
}

// checked notes one of the checks behind /livez and /readyz.
func (m *measured) checked(kind, name string, err error) {
	value, status := 1.0, "success"
	if err != nil {
		value, status = 0, "error"
	}
	m.check.WithLabelValues(kind, name).Set(value)
	m.checks.WithLabelValues(kind, name, status).Inc()
}
