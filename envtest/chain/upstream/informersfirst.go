package upstream

// Works around GenericAPIServer.RunPostStartHooks (k8s.io/apiserver/pkg/server, hooks.go), which begins all
// hooks at the same time. TestBootHooks of envtest notices when upstream has other hooks.

import (
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// informerHooks start the informers that other hooks, controllers and admission plugins
// wait for.
var informerHooks = []string{
	"generic-apiserver-start-informers", "start-apiextensions-informers", "start-kube-aggregator-informers",
}

// informersPatience is how long a hook waits for informers. It is the pause between two looks
// of upstream's at whether they have synced, so no hook comes later than by upstream's polling.
const informersPatience = 100 * time.Millisecond

// InformersFirst lets the other hooks begin when the informers have synced. Upstream begins
// them all at once. Most of them, and the first requests of the rest, then find that nothing
// has synced and look again after 100 ms, which was a sixth of a boot.
type InformersFirst struct {
	factories []informerFactory
	then      func()       // is called when they have synced
	pending   atomic.Int32 // informerHooks that have not returned
	synced    chan struct{}
}

type informerFactory interface {
	WaitForCacheSync(stop <-chan struct{}) map[reflect.Type]bool
}

// NewInformersFirst returns the InformersFirst of one server. Then is called when the informers of
// the factories have synced.
func NewInformersFirst(then func(), factories ...informerFactory) *InformersFirst {
	f := &InformersFirst{factories: factories, then: then, synced: make(chan struct{})}
	f.pending.Store(int32(len(informerHooks)))
	return f
}

// Wrap wraps one of upstream's post-start hooks.
func (f *InformersFirst) Wrap(name string, hook genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
	if slices.Contains(informerHooks, name) {
		return func(ctx genericapiserver.PostStartHookContext) error {
			err := hook(ctx)
			if f.pending.Add(-1) == 0 {
				go f.await(ctx)
			}
			return err
		}
	}
	return func(ctx genericapiserver.PostStartHookContext) error {
		select {
		case <-f.synced:
		case <-time.After(informersPatience): // a rule may hold an informer
		case <-ctx.Done():
		}
		return hook(ctx)
	}
}

// await waits until all informers have synced, or the server stops.
func (f *InformersFirst) await(ctx genericapiserver.PostStartHookContext) {
	for _, factory := range f.factories {
		factory.WaitForCacheSync(ctx.Done())
	}
	f.then()
	close(f.synced)
}
