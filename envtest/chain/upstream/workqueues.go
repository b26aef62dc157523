package upstream

// Works around the work queues of client-go (k8s.io/client-go/util/workqueue), each of
// which updates two of its metrics twice a second: four million times a day in an idle
// server, which is most of what it does. Upstream starts no such loop if there are no
// metrics, but has its provider set once in a process, by an init function, and keeps the
// one without metrics to itself. Without this file a day takes four times as long:
// TestWithoutQueueMetrics.

import (
	"reflect"
	"unsafe"

	"k8s.io/client-go/util/workqueue"
)

// WithoutQueueMetrics lets queues that are made from now on have no metrics, until they
// are given back.
func WithoutQueueMetrics() (giveBack func()) {
	before := queueMetrics
	if none := noQueueMetrics(); none != nil {
		queueMetrics = none
	}
	return func() { queueMetrics = before }
}

//go:linkname queueMetrics k8s.io/client-go/util/workqueue.globalMetricsProvider
var queueMetrics workqueue.MetricsProvider

// noQueueMetrics is upstream's provider without metrics, which only its type tells from
// others; nil if there is none of that name.
func noQueueMetrics() workqueue.MetricsProvider {
	const name = "noopMetricsProvider"
	for _, pointer := range typesByString("*workqueue." + name) {
		nothing := struct{ dynamicType, value unsafe.Pointer }{dynamicType: pointer} // as the runtime lays out an any
		provider := reflect.TypeOf(*(*any)(unsafe.Pointer(&nothing))).Elem()
		if provider.PkgPath() != reflect.TypeFor[workqueue.QueueConfig]().PkgPath() {
			continue
		}
		if none, ok := reflect.Zero(provider).Interface().(workqueue.MetricsProvider); ok {
			return none
		}
	}
	return nil
}

// typesByString returns the pointer types of that name. The reflect package promises to
// keep it for those who link to it so.
//
//go:linkname typesByString reflect.typesByString
func typesByString(name string) []unsafe.Pointer
