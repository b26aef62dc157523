package settle

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/internal/broadcast"
)

// awaitPatience is how long at most a write waits until the server knows of it. Upstream lets a
// consistent read wait as long for its watch cache.
const awaitPatience = 3 * time.Second

// Await waits until the server's watch cache of a resource, and its informers with their handlers,
// have seen a write of a revision, as they nearly always have on a machine with an etcd by the time
// that a client has its answer and asks for the next thing. Where a rule may keep one of them from
// that, or the server stops, it does not wait.
//
// For example, RBAC's authorizer asks an informer. A client that creates a RoleBinding and then uses
// it is refused if the informer gets the event later than the authorizer gets the question. In one
// process that takes microseconds more than the answer to the client does.
func (s *Server) Await(ctx context.Context, resource *reststorage.Resource, revision uint64) {
	if s.Faults.About(s.Name, resource.Name(), delaying(resource.Name())...) {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, awaitPatience, errUnseen)
	defer cancel()
	defer context.AfterFunc(s.Stopping, cancel)()
	if err := s.awaitSeen(ctx, resource, revision); errors.Is(err, errUnseen) {
		klog.Warningf("A write to %s, of revision %d, waits no longer after %s: %v",
			resource.Name(), revision, awaitPatience, err)
	}
}

// errUnseen is why Await stops waiting when its patience ends.
var errUnseen = errors.New("a watch cache or an informer of this server has not seen it yet")

func (s *Server) awaitSeen(ctx context.Context, resource *reststorage.Resource, revision uint64) error {
	if err := resource.WaitSeen(ctx, revision); err != nil {
		return err
	}
	for _, f := range s.followersOf(resource.Name()) {
		if err := f.wait(ctx, revision); err != nil {
			return err
		}
	}
	return nil
}

// What AwaitWatchers waits for, in all and for what a controller does.
const (
	watchersPatience = 50 * time.Millisecond
	commitTime       = 5 * time.Millisecond
)

// AwaitWatchers waits between two writes of one request, until those who watch the resource have taken
// the first, and then as long as an etcd takes to commit the second. A controller then has the chance to
// act on the first that it has beside an etcd.
//
// For example, a Pod that is on no node gets a deletion timestamp first, and then it is deleted. A
// controller that finds the Pod in its cache between the two may act otherwise than one that finds none.
func (s *Server) AwaitWatchers(ctx context.Context, resource *reststorage.Resource) {
	ctx, cancel := context.WithTimeout(ctx, watchersPatience)
	defer cancel()
	defer context.AfterFunc(s.Stopping, cancel)()
	if resource.WaitDelivered(ctx) != nil {
		return
	}
	if _, watched := resource.Room(); !watched {
		return
	}
	select {
	case <-time.After(commitTime):
	case <-ctx.Done():
	}
}

// delaying are the points at which the events of a resource go from the store to the informers.
func delaying(resource string) []string {
	return []string{
		fault.StoreList, fault.StoreWatchCreate, fault.StoreWatchEvent, fault.StoreProgress,
		fault.CachePoint + resource, fault.InformerPoint + resource, fault.WatchPoint + resource,
		fault.HTTPPoint + "list", fault.HTTPPoint + "watch",
	}
}

// followed are the informers of a server.
type followed struct {
	mu         sync.Mutex
	byResource map[string][]*follower // from the first write to one on
	handled    map[cache.SharedIndexInformer][]*handled
}

// Follow returns what a handler of an informer has to be replaced with, before the informer starts,
// for writes to wait until the handler has dealt with them.
func (s *Server) Follow(
	informer cache.SharedIndexInformer, handler cache.ResourceEventHandler,
) cache.ResourceEventHandler {
	if s.followed.handled == nil {
		s.followed.handled = map[cache.SharedIndexInformer][]*handled{}
	}
	h := &handled{ResourceEventHandler: handler}
	s.followed.handled[informer] = append(s.followed.handled[informer], h)
	return h
}

// followersOf returns the informers of a resource that have started.
func (s *Server) followersOf(resource string) []*follower {
	s.followed.mu.Lock()
	defer s.followed.mu.Unlock()
	if s.followed.byResource == nil {
		s.followed.byResource = map[string][]*follower{}
		for resource, informers := range s.startedInformers() {
			for _, informer := range informers {
				f := &follower{informer: informer, handlers: s.followed.handled[informer]}
				s.followed.byResource[resource] = append(s.followed.byResource[resource], f)
			}
		}
	}
	return s.followed.byResource[resource]
}

// follower follows what the handlers of an informer have dealt with.
type follower struct {
	informer cache.SharedIndexInformer
	once     sync.Once
	handlers []*handled
}

// wait waits until the handlers have dealt with a revision. An informer that has not synced, or has
// stopped, is not waited for.
func (f *follower) wait(ctx context.Context, revision uint64) error {
	if !f.informer.HasSynced() || f.informer.IsStopped() {
		return nil
	}
	f.once.Do(func() {
		if len(f.handlers) > 0 {
			return
		}
		// One that does nothing, for an informer whose store is all that is asked. To add it fails
		// only where the informer has stopped meanwhile, before which the server has ended the wait.
		h := &handled{ResourceEventHandler: cache.ResourceEventHandlerFuncs{}}
		f.handlers = []*handled{h}
		_, _ = f.informer.AddEventHandler(h)
	})
	for _, h := range f.handlers {
		if err := h.news.Await(ctx, func() bool { return h.seen.Load() >= revision }); err != nil {
			return err
		}
	}
	return nil
}

// handled is a handler that says what it has dealt with.
type handled struct {
	cache.ResourceEventHandler
	seen atomic.Uint64 // the newest revision
	news broadcast.News
}

// OnAdd implements cache.ResourceEventHandler, as do OnUpdate and OnDelete.
func (h *handled) OnAdd(object any, initial bool) {
	h.ResourceEventHandler.OnAdd(object, initial)
	h.saw(object)
}

func (h *handled) OnUpdate(before, after any) {
	h.ResourceEventHandler.OnUpdate(before, after)
	h.saw(after)
}

func (h *handled) OnDelete(object any) {
	h.ResourceEventHandler.OnDelete(object)
	h.saw(object)
}

// saw is told of an object that the informer's store has, or no longer has.
func (h *handled) saw(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	if object, ok := object.(runtime.Object); ok {
		revision, err := apistorage.APIObjectVersioner{}.ObjectResourceVersion(object)
		if err == nil && revision > h.seen.Load() {
			h.seen.Store(revision) // by one goroutine, the listener's
		}
	}
	h.news.Tell()
}
