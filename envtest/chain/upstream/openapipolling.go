package upstream

// Works around APIAggregator.openAPIV3AggregationController.queue (k8s.io/
// kube-aggregator/pkg/apiserver), an unexported field of an unexported field, by
// which the aggregator asks each server of the chain for new schemas every second.
// TestOpenAPIQueue notices when upstream changes, and TestSchemasAfterIdle of
// envtest when schemas come late.

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"
	"unsafe"

	"k8s.io/client-go/util/workqueue"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	openapiv3aggregator "k8s.io/kube-aggregator/pkg/controllers/openapiv3/aggregator"
)

// OpenAPIPolling spares an idle server most of upstream's polling for new OpenAPI
// v3 schemas: the aggregator asks each server of the chain every second, the
// mutating-policy plugin asks the aggregator every five (openapiindex.go). Within
// schemaSettling of a change of a CRD or an aggregated API both poll as upstream
// does; later there is nothing to find, and they look once in idlePoll. In virtual
// time, where no clock has to reach the next hour, that polling was a third of its cost.
type OpenAPIPolling struct {
	mu      sync.Mutex
	changed time.Time
	queue   *pollingQueue // nil until the aggregator has one
}

const (
	// schemaSettling is longer than every step from a CRD's event to the index:
	// upstream's CRD controllers, a poll of the aggregator, a poll of the index.
	schemaSettling = time.Minute
	// idlePoll is upstream's for servers outside the chain, at most schemaSettling.
	idlePoll = time.Minute
)

// NewOpenAPIPolling returns the OpenAPIPolling of one server.
func NewOpenAPIPolling() *OpenAPIPolling { return &OpenAPIPolling{changed: time.Now()} }

// settled reports whether no schema can have changed for a while.
func (p *OpenAPIPolling) settled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.changed) > schemaSettling
}

// SchemasChange is to be called when a schema may change from now on.
func (p *OpenAPIPolling) SchemasChange() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed = time.Now()
	if p.queue != nil {
		p.queue.hurry()
	}
}

// pollingQueue is the queue of upstream's OpenAPI v3 AggregationController.
type pollingQueue struct {
	workqueue.TypedRateLimitingInterface[string]
	polling *OpenAPIPolling

	mu     sync.Mutex
	period map[string]time.Duration // of the servers of the chain
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *pollingQueue) AddAfter(key string, after time.Duration) {
	if !openapiv3aggregator.IsLocalAPIService(key) {
		// An APIService is named version.group, unlike what the aggregator serves itself.
		if strings.Contains(key, ".") {
			q.polling.SchemasChange() // those of others may at any time, unannounced
		}
		q.TypedRateLimitingInterface.AddAfter(key, after)
		return
	}
	settled := q.polling.settled()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.period[key] = after
	if settled {
		after = max(after, idlePoll)
	}
	q.TypedRateLimitingInterface.AddAfter(key, after)
}

// hurry brings forward idle polls: of two times the queue takes the earlier.
func (q *pollingQueue) hurry() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, after := range q.period {
		q.TypedRateLimitingInterface.AddAfter(key, after)
	}
}

// Slow slows the aggregator's polling, after PrepareRun has made the controller.
func (p *OpenAPIPolling) Slow(aggregator *aggregatorapiserver.APIAggregator) error {
	queue, err := openAPIQueue(aggregator)
	if queue == nil || err != nil {
		return err // or OpenAPI is off
	}
	slow := &pollingQueue{TypedRateLimitingInterface: *queue, polling: p, period: map[string]time.Duration{}}
	*queue = slow
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = slow
	return nil
}

// FetchOpenAPI lets the aggregator ask the servers of the chain for their documents now.
func FetchOpenAPI(aggregator *aggregatorapiserver.APIAggregator) error {
	const path = "openAPIV3AggregationController.openAPIAggregationManager"
	manager, err := unexported[openapiv3aggregator.SpecProxier](aggregator, path)
	if manager == nil || err != nil {
		return err // or OpenAPI is off
	}
	for _, name := range (*manager).GetAPIServiceNames() {
		if openapiv3aggregator.IsLocalAPIService(name) {
			err = errors.Join(err, (*manager).UpdateAPIServiceSpec(name))
		}
	}
	return err
}

// openAPIQueue returns where the queue is, nil if the aggregator serves no OpenAPI.
func openAPIQueue(aggregator *aggregatorapiserver.APIAggregator) (*workqueue.TypedRateLimitingInterface[string], error) {
	return unexported[workqueue.TypedRateLimitingInterface[string]](aggregator, "openAPIV3AggregationController.queue")
}

// unexported returns a field by its path in a struct; nil behind a nil pointer.
func unexported[T any](of any, path string) (*T, error) {
	value := reflect.ValueOf(of).Elem()
	for name := range strings.SplitSeq(path, ".") {
		if value.Kind() == reflect.Pointer {
			if value.IsNil() {
				return nil, nil
			}
			value = value.Elem()
		}
		if value.Kind() != reflect.Struct || !value.FieldByName(name).IsValid() {
			return nil, errChanged("no %s in %T any more", path, of)
		}
		value = value.FieldByName(name)
	}
	if value.Type() != reflect.TypeFor[T]() {
		return nil, errChanged("%s of %T is a %s", path, of, value.Type())
	}
	return (*T)(unsafe.Pointer(value.UnsafeAddr())), nil
}
