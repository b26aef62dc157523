package inject

import (
	"context"
	"sync"

	"snowglobe.test/envtest/chain/upstream"
	"snowglobe.test/envtest/fault"
)

// Signal replaces a lifecycle signal and asks the rules before it fires. Its method
// Signal never blocks. Make it with NewSignal.
type Signal struct {
	upstream.LifecycleSignal
	injector *fault.Injector
	firing   *sync.WaitGroup
	once     sync.Once
	done     chan struct{}
}

// NewSignal wraps upstream's signal. While there are rules it fires from a
// goroutine, which is counted in firing.
func NewSignal(signal upstream.LifecycleSignal, i *fault.Injector, firing *sync.WaitGroup) *Signal {
	return &Signal{LifecycleSignal: signal, injector: i, firing: firing, done: make(chan struct{})}
}

// Done is closed when the signal has fired or a rule has dropped it.
func (s *Signal) Done() <-chan struct{} { return s.done }

// Signal implements upstream's lifecycleSignal.
func (s *Signal) Signal() {
	if !s.injector.Active() {
		s.LifecycleSignal.Signal()
		s.once.Do(func() { close(s.done) })
		return
	}
	s.once.Do(func() { s.firing.Go(s.fire) })
}

// fire fires the signal unless a rule drops it, after a crash too: a crashed server
// must still be able to stop.
func (s *Signal) fire() {
	defer close(s.done)
	fire := func() done {
		s.LifecycleSignal.Signal()
		return done{}
	}
	fault.Execute(context.Background(), s.injector, func() fault.Operation {
		return fault.Operation{Point: "signal/" + s.Name()}
	}, fault.Ways[done]{
		Proceed: fire,
		Fail:    func(error) done { return fire() },
		Drop:    func() done { return done{} },
	})
}
