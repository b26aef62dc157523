package process

import (
	"reflect"
	"strings"
	_ "unsafe" // for linkname

	"k8s.io/client-go/util/workqueue"
	_ "k8s.io/component-base/metrics/prometheus/workqueue" // sets queueMetrics before init looks at it

	"snowglobe.test/internal/typename"
)

// queueMetrics makes the metrics of each work queue in the process. Packages that set it do so in
// an init function, and the first wins.
//
//go:linkname queueMetrics k8s.io/client-go/util/workqueue.globalMetricsProvider
var queueMetrics workqueue.MetricsProvider

// Upstream's provider is the first wherever a server is linked. controller-runtime's own then never
// gets its turn, so that a manager would not tell of its controllers' queues at its /metrics.
func init() {
	const name, of = "WorkqueueMetricsProvider", "sigs.k8s.io/controller-runtime/"
	if program := providerOfType("metrics."+name, of); program != nil {
		queueMetrics = routedQueues{member: queueMetrics, program: program}
	}
}

// routedQueues gives the queues of members upstream's metrics, which servers tell at /metrics, and
// those of the program its own.
type routedQueues struct{ member, program workqueue.MetricsProvider }

func (r routedQueues) provider() workqueue.MetricsProvider {
	if current() == nil {
		return r.program
	}
	return r.member
}

// NewDepthMetric implements workqueue.MetricsProvider, as do the other methods.
func (r routedQueues) NewDepthMetric(name string) workqueue.GaugeMetric {
	return r.provider().NewDepthMetric(name)
}

func (r routedQueues) NewAddsMetric(name string) workqueue.CounterMetric {
	return r.provider().NewAddsMetric(name)
}

func (r routedQueues) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return r.provider().NewLatencyMetric(name)
}

func (r routedQueues) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return r.provider().NewWorkDurationMetric(name)
}

func (r routedQueues) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return r.provider().NewUnfinishedWorkSecondsMetric(name)
}

func (r routedQueues) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return r.provider().NewLongestRunningProcessorSecondsMetric(name)
}

func (r routedQueues) NewRetriesMetric(name string) workqueue.CounterMetric {
	return r.provider().NewRetriesMetric(name)
}

// WithoutQueueMetrics lets queues that are made from now on have no metrics, until they are given
// back. A queue updates two of its metrics twice a second: four million times a day in an idle
// server, which is most of what it does. With them a day takes four times as long:
// TestWithoutQueueMetrics.
func WithoutQueueMetrics() (giveBack func()) {
	before := queueMetrics
	// Upstream keeps the provider without metrics to itself.
	of := reflect.TypeFor[workqueue.QueueConfig]().PkgPath()
	if none := providerOfType("workqueue.noopMetricsProvider", of); none != nil {
		queueMetrics = none
	}
	return func() { queueMetrics = before }
}

// providerOfType returns the zero value of a type of this name, in a package whose path begins with
// of; nil if the program has none.
func providerOfType(name, of string) workqueue.MetricsProvider {
	for _, provider := range typename.Find(name) {
		if !strings.HasPrefix(provider.PkgPath(), of) {
			continue
		}
		if zero, ok := reflect.Zero(provider).Interface().(workqueue.MetricsProvider); ok {
			return zero
		}
	}
	return nil
}
