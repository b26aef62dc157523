package upstream

// Works around policySource (k8s.io/apiserver/pkg/admission/plugin/policy/generic), which starts
// the informer of a built-in kind of params on the server's own factory, and ends it with the last
// binding that needs it. A factory starts an informer once: it stays as it was when it ended, for
// the next policy with such params and for who waits for the informers of the factory
// (kubernetes#130887). TestPolicyParams shows what this is for.

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
)

// lastingInformers runs all its informers for as long as the first of them.
type lastingInformers struct {
	informers.SharedInformerFactory
	started sync.Once
	ctx     context.Context //nolint:containedctx // of the server, which starts its informers first
}

// LastingInformers returns a factory no part of which ends with the informers that are started later.
func LastingInformers(factory informers.SharedInformerFactory) informers.SharedInformerFactory {
	return &lastingInformers{SharedInformerFactory: factory}
}

// Start implements informers.SharedInformerFactory.
func (l *lastingInformers) Start(stop <-chan struct{}) {
	l.StartWithContext(wait.ContextForChannel(stop))
}

// StartWithContext implements informers.SharedInformerFactory.
func (l *lastingInformers) StartWithContext(ctx context.Context) {
	l.started.Do(func() { l.ctx = ctx })
	l.SharedInformerFactory.StartWithContext(l.ctx)
}
