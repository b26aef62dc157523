package envtest

import "sync"

// phase is how far an instance has come. It only ever goes forward.
type phase int

const (
	phaseRunning phase = iota // from its boot on
	phaseFailed               // it has failed by itself, and its chain is ending
	phaseEnding               // it is being released, because it was stopped, has failed or was killed
	phaseEnded                // all that it took has been given back
	phases
)

// life is the phase of an instance, and what is said of its end. Make it with newLife.
type life struct {
	mu        sync.Mutex
	now       phase
	reached   [phases]chan struct{} // closed when the phase, or a later one, is entered
	failure   error                 // nil unless it has failed, which it may while it ends
	leftovers error                 // what was left when it ended
}

func newLife() *life {
	l := &life{}
	for p := range l.reached {
		l.reached[p] = make(chan struct{})
	}
	close(l.reached[phaseRunning])
	return l
}

// enter reports whether the life was not as far yet.
func (l *life) enter(p phase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p <= l.now {
		return false
	}
	for ; l.now < p; l.now++ {
		close(l.reached[l.now+1])
	}
	return true
}

// fail keeps the first failure, and reports whether it was that.
func (l *life) fail(err error) bool {
	l.mu.Lock()
	first := l.failure == nil
	if first {
		l.failure = err
	}
	l.mu.Unlock()
	l.enter(phaseFailed)
	return first
}

// end says what is left of an instance that has ended.
func (l *life) end(leftovers error) {
	l.mu.Lock()
	l.leftovers = leftovers
	l.mu.Unlock()
	l.enter(phaseEnded)
}

// past is closed when the life goes on from a phase.
func (l *life) past(p phase) <-chan struct{} { return l.reached[p+1] }

func (l *life) is(p phase) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now == p
}

// err is the failure, nil if there is none.
func (l *life) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failure
}

// left is what was left when the life ended.
func (l *life) left() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leftovers
}
