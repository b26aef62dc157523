package process

import (
	"context"
	"net/url"
	"reflect"
	"time"

	"k8s.io/client-go/tools/metrics"
)

const upstreamMetrics = "k8s.io/component-base/metrics/prometheus/restclient"

// A process has one set of metrics of client-go. Where they are upstream's, they are the servers',
// and the servers tell of them at /metrics. Where another library has claimed them, such as
// controller-runtime, they are about the clients of a program that had an API server elsewhere: what
// members ask, hundreds of requests in each boot, is kept out of them.
func init() {
	if of := reflect.TypeOf(metrics.RequestResult); of.Kind() == reflect.Pointer && of.Elem().PkgPath() == upstreamMetrics {
		return
	}
	metrics.RequestResult = strangersResult{metrics.RequestResult}
	metrics.RequestRetry = strangersRetry{metrics.RequestRetry}
	for _, size := range []*metrics.SizeMetric{&metrics.RequestSize, &metrics.ResponseSize} {
		*size = strangersSize{*size}
	}
	for _, latency := range []*metrics.LatencyMetric{&metrics.RequestLatency, &metrics.RateLimiterLatency} {
		*latency = strangersLatency{*latency}
	}
}

type strangersResult struct{ metrics.ResultMetric }

// Increment implements metrics.ResultMetric.
func (m strangersResult) Increment(ctx context.Context, code, method, host string) {
	if current() == nil {
		m.ResultMetric.Increment(ctx, code, method, host)
	}
}

type strangersRetry struct{ metrics.RetryMetric }

// IncrementRetry implements metrics.RetryMetric.
func (m strangersRetry) IncrementRetry(ctx context.Context, code, method, host string) {
	if current() == nil {
		m.RetryMetric.IncrementRetry(ctx, code, method, host)
	}
}

type strangersSize struct{ metrics.SizeMetric }

// Observe implements metrics.SizeMetric.
func (m strangersSize) Observe(ctx context.Context, verb, host string, size float64) {
	if current() == nil {
		m.SizeMetric.Observe(ctx, verb, host, size)
	}
}

type strangersLatency struct{ metrics.LatencyMetric }

// Observe implements metrics.LatencyMetric.
func (m strangersLatency) Observe(ctx context.Context, verb string, u url.URL, latency time.Duration) {
	if current() == nil {
		m.LatencyMetric.Observe(ctx, verb, u, latency)
	}
}
