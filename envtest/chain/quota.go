package chain

import (
	"context"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// quotaDrain lets the quota plugin finish what it evaluates when the server has
// drained. A request whose client has gone counts as drained, but its handler
// goes on; if it comes to the plugin when the plugin's workers have ended,
// it waits for them in vain, for ten seconds, and so would a stop. So the workers
// end after the last evaluation under way, and later ones are refused.
type quotaDrain struct {
	over chan struct{} // closed when the requests are drained and nothing is evaluated

	mu       sync.Mutex
	underWay int
	drained  bool
}

func newQuotaDrain() *quotaDrain { return &quotaDrain{over: make(chan struct{})} }

// outlast puts, until the function it returns is called, a later end in the place
// of a configuration's signal of drained requests.
func (q *quotaDrain) outlast(config *genericapiserver.Config) func() {
	for _, field := range lifecycleSignals(config) {
		s := field.Interface().(signal)
		if s.Name() != inFlightRequestsDrained {
			continue
		}
		go func() {
			<-s.Signaled()
			q.drain()
		}()
		field.Set(reflect.ValueOf(&outlasted{s, q.over}))
		return func() { field.Set(reflect.ValueOf(s)) }
	}
	panic("upstream changed: server.Config has no lifecycle signal " + inFlightRequestsDrained + " any more")
}

// outlasted is a signal that is seen later than it fires.
type outlasted struct {
	signal
	seen <-chan struct{}
}

// Signaled implements upstream's lifecycleSignal.
func (s *outlasted) Signaled() <-chan struct{} { return s.seen }

func (q *quotaDrain) drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drained = true
	if q.underWay == 0 {
		close(q.over)
	}
}

func (q *quotaDrain) begin() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.drained {
		return apierrors.NewServiceUnavailable("no quota is evaluated any more: " + errStopping.Error())
	}
	q.underWay++
	return nil
}

func (q *quotaDrain) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.underWay--
	if q.drained && q.underWay == 0 {
		close(q.over)
	}
}

// decorate is an admission.DecoratorFunc.
func (q *quotaDrain) decorate(plugin admission.Interface, _ string) admission.Interface {
	if quota, ok := plugin.(*resourcequota.QuotaAdmission); ok {
		return &drainedQuota{quota, q}
	}
	return plugin
}

// drainedQuota is upstream's quota plugin, asked only while it has workers.
type drainedQuota struct {
	admission.ValidationInterface
	drain *quotaDrain
}

// Validate implements admission.ValidationInterface.
func (d *drainedQuota) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if err := d.drain.begin(); err != nil {
		return err
	}
	defer d.drain.end()
	return d.ValidationInterface.Validate(ctx, a, o)
}
