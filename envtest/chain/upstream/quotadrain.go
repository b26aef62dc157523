package upstream

// Works around resourcequota.QuotaAdmission.SetDrainedNotification
// (k8s.io/apiserver/pkg/admission/plugin/resourcequota): the workers of the plugin
// end when the server has drained, and a request that comes to them later waits
// ten seconds for workers that are gone. TestQuotaWithoutDrain fails when upstream does without.

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/waitgroup"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// QuotaDrain lets the quota plugin finish what it evaluates when the server has
// drained. A request whose client has gone counts as drained, but its handler may
// come to the plugin only then. So the workers end after the last evaluation under
// way, and later ones are refused.
type QuotaDrain struct {
	over     chan struct{}           // closed when the requests are drained and nothing is evaluated
	underWay waitgroup.SafeWaitGroup // evaluations; it takes no more when the requests are drained
}

// NewQuotaDrain returns the QuotaDrain of one server.
func NewQuotaDrain() *QuotaDrain { return &QuotaDrain{over: make(chan struct{})} }

// Delay has a configuration's signal of drained requests fire only after the last
// evaluation, for whoever asks for it before restore is called: the plugin, which
// is configured meanwhile.
func (q *QuotaDrain) Delay(config *genericapiserver.Config) (restore func(), err error) {
	fields, err := signalFields(config)
	if err != nil {
		return nil, err
	}
	for _, field := range fields {
		upstream := field.Interface().(LifecycleSignal)
		if upstream.Name() != InFlightRequestsDrained {
			continue
		}
		go func() {
			<-upstream.Signaled()
			q.underWay.Wait()
			close(q.over)
		}()
		set(field, &lateSignal{upstream, q.over})
		return func() { set(field, upstream) }, nil
	}
	return nil, errChanged("server.Config has no lifecycle signal %s any more", InFlightRequestsDrained)
}

// lateSignal is a signal that is seen later than it fires.
type lateSignal struct {
	LifecycleSignal
	seen <-chan struct{}
}

// Signaled implements LifecycleSignal.
func (s *lateSignal) Signaled() <-chan struct{} { return s.seen }

// Decorate is an admission.DecoratorFunc. It makes the quota plugin refuse what
// comes after the drain.
func (q *QuotaDrain) Decorate(plugin admission.Interface, _ string) admission.Interface {
	if quota, ok := plugin.(*resourcequota.QuotaAdmission); ok {
		return &drainedQuota{quota, q}
	}
	return plugin
}

// drainedQuota is upstream's quota plugin, asked only while it has workers.
type drainedQuota struct {
	admission.ValidationInterface
	drain *QuotaDrain
}

// Validate implements admission.ValidationInterface.
func (d *drainedQuota) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if d.drain.underWay.Add(1) != nil {
		return apierrors.NewServiceUnavailable("the API server is stopping and evaluates no quota any more")
	}
	defer d.drain.underWay.Done()
	return d.ValidationInterface.Validate(ctx, a, o)
}
