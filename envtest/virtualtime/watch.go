package virtualtime

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"snowglobe.test/envtest/sim"
)

// Patience is how long, on the wall, goroutines may keep a bubble from moving before
// Watched and Bubble give it up.
const Patience = 2500 * time.Millisecond

// Watched runs f, which enters a bubble and calls begun first thing in there, and
// returns when f has, also by runtime.Goexit. Where f never would, because goroutines
// of the bubble wait for what virtual time can't bring (a socket, a mutex, a channel
// from outside), it returns a *StuckError once they have been at the same place for
// patience, on the wall, and twenty times that if any of them runs. The bubble is then
// left behind, with all its goroutines. One that runs for four times the patience, while
// time stands still, is named in warnings, and goes on.
func Watched(patience time.Duration, warnings io.Writer, f func(begun func())) error {
	if err := checkTimers(); err != nil {
		return err
	}
	startSignals()
	ended := make(chan struct{})
	var bubble atomic.Pointer[watched]
	go func() {
		defer close(ended)
		f(func() { bubble.Store(watch()) })
	}()
	pause := patience / looksInPatience
	looks := time.NewTicker(pause)
	defer looks.Stop()
	defer func() { bubble.Load().forget() }()
	m := &monitor{stacks: make([]byte, 1<<16), since: map[string]time.Duration{}}
	for {
		select {
		case <-ended:
			return nil
		case <-looks.C:
		}
		m.age += pause
		w := bubble.Load()
		if w == nil {
			continue
		}
		w.spinning.name(m, spinFactor*patience, warnings)
		if !w.quiet() {
			clear(m.since)
			continue
		}
		m.self.bubble = w.bubble
		if stuck := m.stuck(m.busy(), patience); len(stuck) > 0 {
			return &StuckError{stuck}
		}
	}
}

// looksInPatience is how often Watched looks at the goroutines before it gives up.
const looksInPatience = 4

// watched is a bubble, and a counter that shows whether something happens in it. Without the
// counter, Watched would have to look at the stacks of all goroutines: with thousands of them
// that takes a tenth of a second and stops them all. In sim mode it would also delay a goroutine
// that just then looks at stacks itself (Rest), so that one seed would give different runs.
type watched struct {
	bubble string
	moves  func() uint64
	seen   uint64 // moves at the last call of quiet
	still  int    // calls of quiet since moves has changed

	spinning *spinning // nil in sim mode
}

// moving are the counters of Moves, by bubble.
var moving sync.Map // of *atomic.Uint64

// watch describes the bubble of the calling goroutine.
func watch() *watched {
	w := &watched{bubble: self().bubble}
	if w.moves = sim.ChoicesHere(); w.moves != nil {
		return w
	}
	counter := &atomic.Uint64{}
	moving.Store(w.bubble, counter)
	w.moves = counter.Load
	w.spinning = &spinning{bubble: w.bubble, moments: counter.Load}
	return w
}

// quiet reports whether moves has not changed at this call, nor at the one before.
func (w *watched) quiet() bool {
	if n := w.moves(); n != w.seen {
		w.seen, w.still = n, 0
		return false
	}
	w.still++
	return w.still > 1
}

func (w *watched) forget() {
	if w != nil {
		moving.Delete(w.bubble)
	}
}

// Moves returns a function to call whenever something happens in the bubble of the calling
// goroutine. It tells Watched that the bubble goes on.
func Moves() (moved func()) { return movesOf(self().bubble) }

func movesOf(bubble string) (moved func()) {
	counter, ok := moving.Load(bubble)
	if !ok {
		return func() {}
	}
	return func() { counter.(*atomic.Uint64).Add(1) }
}
