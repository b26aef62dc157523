package chain

import (
	"context"
	"sync/atomic"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// autoregistrationHook is upstream's name of the hook that starts the
// controllers which make APIServices.
const autoregistrationHook = "kube-apiserver-autoregistration"

// autoregistration knows when the goroutines that the hook starts have come so
// far that they end when they are told to. The first registers the CRDs there
// are; the second waits for it without end, also when the first has given up
// because the server stops. A server on a store that has been booted on before
// is ready earlier than that.
type autoregistration struct {
	asked atomic.Int32 // how often the hook's context was asked when it ends
	want  int32
	began chan struct{} // closed when both run
}

func newAutoregistration() *autoregistration {
	return &autoregistration{began: make(chan struct{})}
}

// wrap watches the hook. Each goroutine asks for the end of the hook's context
// at the moment it is about to run its controller.
func (a *autoregistration) wrap(upstream genericapiserver.PostStartHookFunc, crds bool) genericapiserver.PostStartHookFunc {
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
	by *autoregistration
}

// Done implements context.Context.
func (c *askedContext) Done() <-chan struct{} {
	if c.by.asked.Add(1) == c.by.want {
		close(c.by.began)
	}
	return c.Context.Done()
}
