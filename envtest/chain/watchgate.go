package chain

import (
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WatchGate holds the watch events of single resources between the store and
// the chain's watch caches, progress notifications included, so that a cache
// stays behind while the store moves on. The zero value holds nothing; a gate
// serves one chain.
type WatchGate struct {
	mu   sync.Mutex
	held map[schema.GroupResource]chan struct{} // closed on release
}

// Hold stops the delivery of the resource's watch events. Holding twice is an
// error.
func (g *WatchGate) Hold(resource schema.GroupResource) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held[resource] != nil {
		return fmt.Errorf("watch events of %s are held already", resource)
	}
	if g.held == nil {
		g.held = map[schema.GroupResource]chan struct{}{}
	}
	g.held[resource] = make(chan struct{})
	return nil
}

// Release delivers what was held and all that follows.
func (g *WatchGate) Release(resource schema.GroupResource) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	released := g.held[resource]
	if released == nil {
		return fmt.Errorf("watch events of %s are not held", resource)
	}
	delete(g.held, resource)
	close(released)
	return nil
}

// client returns a client whose watches pass the gate.
func (g *WatchGate) client(inner *kubernetes.Client, resource schema.GroupResource) *kubernetes.Client {
	if g == nil {
		return inner
	}
	outer := clientv3.NewCtxClient(inner.Ctx())
	outer.KV, outer.Lease, outer.Cluster = inner.KV, inner.Lease, inner.Cluster
	outer.Maintenance, outer.Auth = inner.Maintenance, inner.Auth
	outer.Watcher = &gatedWatcher{Watcher: inner.Watcher, gate: g, resource: resource}
	return &kubernetes.Client{Client: outer, Kubernetes: inner.Kubernetes}
}

// pass waits while the resource is held.
func (g *WatchGate) pass(ctx context.Context, resource schema.GroupResource) error {
	for {
		g.mu.Lock()
		released := g.held[resource]
		g.mu.Unlock()
		if released == nil {
			return nil
		}
		select {
		case <-released:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

type gatedWatcher struct {
	clientv3.Watcher
	gate     *WatchGate
	resource schema.GroupResource
}

// Watch implements clientv3.Watcher.
func (w *gatedWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	in := w.Watcher.Watch(ctx, key, opts...)
	out := make(chan clientv3.WatchResponse)
	go func() {
		defer close(out)
		for response := range in {
			if w.gate.pass(ctx, w.resource) != nil {
				return
			}
			select {
			case out <- response:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
