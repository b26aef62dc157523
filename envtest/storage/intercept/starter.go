package intercept

import (
	"context"
	"sync"
)

// starter starts goroutines that belong to the API server, whoever asks for them:
// that may be a writer of another server, and goroutines inherit the label by which
// one sees whose they are. Make it with newStarter.
type starter struct {
	wake    chan struct{} // has room for one
	closing chan struct{}
	ended   chan struct{} // closed when run has returned and all that it started has

	mu      sync.Mutex
	closed  bool
	waiting []func()
}

func newStarter() starter {
	return starter{wake: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{})}
}

// run starts what is asked for, until close.
func (s *starter) run() {
	defer close(s.ended)
	var started sync.WaitGroup
	defer started.Wait()
	for open := true; open; {
		select {
		case <-s.wake:
		case <-s.closing:
			open = false
		}
		for _, f := range s.take() {
			started.Go(f)
		}
	}
}

// take returns what is to be started.
func (s *starter) take() []func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.waiting
	s.waiting = nil
	return taken
}

// start asks for a goroutine, and does not wait for it. After close there are none,
// and it returns false.
func (s *starter) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.waiting = append(s.waiting, f)
	select {
	case s.wake <- struct{}{}:
	default: // it is awake
	}
	return true
}

// close returns when nothing runs any more, or ctx ends.
func (s *starter) close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
