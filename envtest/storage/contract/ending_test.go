package contract

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// ending is the store as a watch cache sees it, until the cache stops. Upstream's Cacher.Stop
// first ends the goroutine that dispatches events, and then waits for the one that queues
// them, for ever where more than a hundred wait. So the watch ends before the cache does.
type ending struct {
	storage.Interface

	mu      sync.Mutex
	ended   bool
	watches []*endingWatch
}

// Watch implements storage.Interface.
func (e *ending) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	inner, err := e.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	w := &endingWatch{Interface: inner, over: make(chan struct{})}
	if e.add(w) {
		return w, nil
	}
	inner.Stop()
	return watch.NewFake(), nil // nothing happens until the cache stops
}

// add adds a watch, unless none may follow.
func (e *ending) add(w *endingWatch) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended {
		e.watches = append(e.watches, w)
	}
	return !e.ended
}

// end returns when the cache takes nothing more from its watch.
func (e *ending) end() {
	e.mu.Lock()
	e.ended = true
	watches := slices.Clone(e.watches)
	e.mu.Unlock()
	for _, w := range watches {
		w.Interface.Stop()
		<-w.over
	}
}

// endingWatch is a watch of the cache's reflector, which stops it when it has taken all.
type endingWatch struct {
	watch.Interface
	once sync.Once
	over chan struct{} // closed by Stop
}

// Stop implements watch.Interface.
func (w *endingWatch) Stop() {
	w.Interface.Stop()
	w.once.Do(func() { close(w.over) })
}

// TestStopBehind stops watch caches that have more to dispatch than their queues hold.
func TestStopBehind(t *testing.T) {
	for i := range 10 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			c := setUpCached(t, each(newMemory, byClient), cacheSettings{})
			for n := range 400 {
				pod := &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", n), Namespace: "a"}}
				must(t, c.fixture.Interface.Create(t.Context(), fmt.Sprint("/pods/a/p", n), pod, nil, 0))
			}
		})
	}
}
