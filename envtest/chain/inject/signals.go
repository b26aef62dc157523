package inject

import (
	"context"
	"sync"

	"snowglobe.test/envtest/chain/upstream"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

// done is the result of an operation that has none.
type done struct{}

// Signal replaces a lifecycle signal and asks the rules before it fires. Its method
// Signal never blocks. Make it with NewSignal.
type Signal struct {
	upstream.LifecycleSignal
	injector *edge.Injector
	firing   *sync.WaitGroup
	once     sync.Once
	done     chan struct{}
}

// NewSignal wraps upstream's signal. While a rule may hold it, it fires from a goroutine,
// which is counted in firing.
func NewSignal(signal upstream.LifecycleSignal, i *edge.Injector, firing *sync.WaitGroup) *Signal {
	return &Signal{LifecycleSignal: signal, injector: i, firing: firing, done: make(chan struct{})}
}

// Done is closed when the signal has fired or a rule has dropped it.
func (s *Signal) Done() <-chan struct{} { return s.done }

// Signal implements upstream's lifecycleSignal.
func (s *Signal) Signal() {
	s.once.Do(func() {
		if s.injector.Concerns(s.operation()) {
			s.firing.Go(s.fire)
			return
		}
		s.LifecycleSignal.Signal()
		close(s.done)
	})
}

func (s *Signal) operation() fault.Operation {
	return fault.Operation{Point: fault.SignalPoint + s.Name()}
}

// fire fires the signal unless a rule drops it, after a crash too: a crashed server
// must still be able to stop.
func (s *Signal) fire() {
	defer close(s.done)
	fire := func() done {
		s.LifecycleSignal.Signal()
		return done{}
	}
	edge.Execute(context.Background(), s.injector, s.operation, edge.Ways[done]{
		Proceed: fire,
		Fail:    func(error) done { return fire() },
		Drop:    func() done { return done{} },
	})
}
