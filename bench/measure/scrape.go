package measure

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"
)

// The metrics of a process that any kube-apiserver has. Its etcd is another process.
const (
	metricCPU    = "process_cpu_seconds_total"
	metricHeap   = "go_memstats_heap_alloc_bytes"
	metricStacks = "go_memstats_stack_inuse_bytes"
	metricAllocs = "go_memstats_mallocs_total"
	metricBytes  = "go_memstats_alloc_bytes_total"
)

// collectGarbage is the path that has a kube-apiserver collect its garbage, with ?gc=1. It is served
// unless --profiling=false.
const collectGarbage = "/debug/pprof/heap"

// ReadMetrics measures the process of an API server by its metrics.
func ReadMetrics(client kubernetes.Interface) func(context.Context, Phase) (Sample, error) {
	return func(ctx context.Context, p Phase) (Sample, error) {
		for range p.collections() {
			if err := client.CoreV1().RESTClient().Get().AbsPath(collectGarbage).Param("gc", "1").Do(ctx).
				Error(); err != nil {
				return Sample{}, err
			}
		}
		text, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").SetHeader("Accept", "text/plain").DoRaw(ctx)
		if err != nil {
			return Sample{}, err
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
		if err != nil {
			return Sample{}, err
		}
		value := func(name string) (value float64) {
			metrics := families[name].GetMetric()
			if len(metrics) != 1 {
				err = fmt.Errorf("the server has no metric %s", name)
				return 0
			}
			return metrics[0].GetCounter().GetValue() + metrics[0].GetGauge().GetValue() + metrics[0].GetUntyped().
				GetValue()
		}
		s := Sample{Allocs: value(metricAllocs), Bytes: value(metricBytes),
			Memory: int64(value(metricHeap) + value(metricStacks))}
		s.CPU = time.Duration(value(metricCPU) * float64(time.Second))
		return s, err
	}
}
