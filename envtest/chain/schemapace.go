package chain

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
	"unsafe"

	"k8s.io/client-go/util/workqueue"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	openapiv3aggregator "k8s.io/kube-aggregator/pkg/controllers/openapiv3/aggregator"
)

// schemaPace spares an idle server most of upstream's polling for new OpenAPI v3
// schemas: the aggregator asks each server of the chain every second, the
// mutating-policy plugin asks the aggregator every five. Within schemaSettling
// of a change of a CRD or an aggregated API both poll as upstream does; when
// nothing has changed for longer there is nothing to find, and they make do with
// one look in idlePoll. In virtual time, where nobody waits for the next hour,
// that polling was a third of its cost.
type schemaPace struct {
	mu      sync.Mutex
	changed time.Time
	queue   *pacedQueue // nil until the aggregator has one
}

const (
	// schemaSettling is longer than every step from a CRD's event to the index:
	// upstream's CRD controllers, a poll of the aggregator, a poll of the index.
	schemaSettling = time.Minute
	// idlePoll is as often as upstream asks servers outside the chain.
	idlePoll = time.Minute
)

func newSchemaPace() *schemaPace { return &schemaPace{changed: time.Now()} }

// settled says whether no schema can have changed for a while.
func (p *schemaPace) settled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.changed) > schemaSettling
}

// touch says that schemas may change now.
func (p *schemaPace) touch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed = time.Now()
	if p.queue != nil {
		p.queue.hurry()
	}
}

// pacedQueue is the queue of upstream's OpenAPI v3 AggregationController.
type pacedQueue struct {
	workqueue.TypedRateLimitingInterface[string]
	pace *schemaPace

	mu     sync.Mutex
	period map[string]time.Duration // of the servers of the chain
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *pacedQueue) AddAfter(key string, after time.Duration) {
	if !openapiv3aggregator.IsLocalAPIService(key) {
		if isAPIService(key) {
			q.pace.touch() // its schemas may change at any time, unannounced
		}
		q.TypedRateLimitingInterface.AddAfter(key, after)
		return
	}
	settled := q.pace.settled()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.period[key] = after
	if settled {
		after = max(after, idlePoll)
	}
	q.TypedRateLimitingInterface.AddAfter(key, after)
}

// isAPIService tells an APIService, which is named version.group, from the names
// upstream makes up for what the aggregator serves itself.
func isAPIService(key string) bool { return strings.Contains(key, ".") }

// hurry brings forward what waits for an idle poll: of two times for one key the
// queue takes the earlier.
func (q *pacedQueue) hurry() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, after := range q.period {
		q.TypedRateLimitingInterface.AddAfter(key, after)
	}
}

// slow puts a pacedQueue in the place of the aggregator's queue.
func (p *schemaPace) slow(aggregator *aggregatorapiserver.APIAggregator) {
	queue := openAPIQueue(aggregator)
	if queue == nil {
		return // OpenAPI is off
	}
	paced := &pacedQueue{TypedRateLimitingInterface: *queue, pace: p, period: map[string]time.Duration{}}
	*queue = paced
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = paced
}

// openAPIQueue reaches for the unexported queue of the aggregator's unexported
// OpenAPI v3 controller. It panics with a plain message when upstream's shape
// has changed.
func openAPIQueue(aggregator *aggregatorapiserver.APIAggregator) *workqueue.TypedRateLimitingInterface[string] {
	const path = "openAPIV3AggregationController.queue"
	value := reflect.ValueOf(aggregator).Elem()
	for name := range strings.SplitSeq(path, ".") {
		if value.Kind() == reflect.Pointer {
			if value.IsNil() {
				return nil
			}
			value = value.Elem()
		}
		if value = value.FieldByName(name); !value.IsValid() {
			panic(fmt.Sprintf("upstream changed: no %s in %s any more", path, reflect.TypeOf(aggregator)))
		}
	}
	queue, ok := reflect.NewAt(value.Type(), unsafe.Pointer(value.UnsafeAddr())).Interface().(*workqueue.TypedRateLimitingInterface[string])
	if !ok {
		panic(fmt.Sprintf("upstream changed: %s is a %s", path, value.Type()))
	}
	return queue
}
