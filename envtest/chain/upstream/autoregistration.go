package upstream

// Works around the hook kube-apiserver-autoregistration (k8s.io/kubernetes/pkg/
// controlplane/apiserver, aggregator.go), which starts two controllers. The first
// registers the CRDs there are; the second waits for it without end, also when the
// first has given up because the server stops. TestStopAtOnce and TestFailAtStage
// of envtest would not end if upstream asked its context in another way.

import (
	"context"
	"sync/atomic"

	crdinformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions/apiextensions/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/tools/cache"
)

// AutoregistrationHook is the hook that starts the controllers of APIServices.
const AutoregistrationHook = "kube-apiserver-autoregistration"

// Autoregistration knows when the hook's controllers have come so far that they end
// when told to. On a store that was booted on before, a server is ready earlier.
type Autoregistration struct {
	asked     atomic.Int32 // how often the hook's context was asked when it ends
	want      int32
	began     chan struct{} // closed when both run
	abandoned atomic.Bool
}

// NewAutoregistration returns the Autoregistration of one server.
func NewAutoregistration() *Autoregistration {
	return &Autoregistration{began: make(chan struct{})}
}

// Began is closed when the controllers run.
func (a *Autoregistration) Began() <-chan struct{} { return a.began }

// Wrap watches the hook of a server with or without the CRD API. Each controller
// asks for the end of the hook's context just before it runs.
func (a *Autoregistration) Wrap(upstream genericapiserver.PostStartHookFunc, crds bool) genericapiserver.PostStartHookFunc {
	a.want = 1
	if crds {
		a.want = 2
	}
	return func(hook genericapiserver.PostStartHookContext) error {
		hook.Context = &askedContext{hook.Context, a}
		return upstream(hook)
	}
}

// askedContext counts how often it is asked when it ends.
type askedContext struct {
	context.Context
	by *Autoregistration
}

// Done implements context.Context.
func (c *askedContext) Done() <-chan struct{} {
	if c.by.asked.Add(1) == c.by.want {
		close(c.by.began)
	}
	return c.Context.Done()
}

// Abandon makes the informer of CRDs look synced, for a hook that is run only to
// end its controllers: the first then ends, and the second no longer waits for it.
func (a *Autoregistration) Abandon() { a.abandoned.Store(true) }

// CRDs returns upstream's informer of CRDs, for the controllers.
func (a *Autoregistration) CRDs(upstream crdinformers.CustomResourceDefinitionInformer) crdinformers.CustomResourceDefinitionInformer {
	return &abandonableCRDs{upstream, a}
}

type abandonableCRDs struct {
	crdinformers.CustomResourceDefinitionInformer
	of *Autoregistration
}

// Informer implements crdinformers.CustomResourceDefinitionInformer.
func (c *abandonableCRDs) Informer() cache.SharedIndexInformer {
	return &abandonableInformer{c.CustomResourceDefinitionInformer.Informer(), c.of}
}

type abandonableInformer struct {
	cache.SharedIndexInformer
	of *Autoregistration
}

// HasSynced implements cache.SharedInformer.
func (i *abandonableInformer) HasSynced() bool {
	return i.of.abandoned.Load() || i.SharedIndexInformer.HasSynced()
}
