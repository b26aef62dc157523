package virtualtime

import (
	"sync"
	"sync/atomic"
	"time"
)

// Patience is how long, on the wall, goroutines may keep a bubble from moving before
// Watched and Bubble give it up.
const Patience = 3 * time.Second

// Watched runs f, which enters a bubble and calls begun first thing in there, and
// returns when f has, also by runtime.Goexit. Where f never would, because goroutines
// of the bubble wait for what virtual time can't bring (a socket, a mutex, a channel
// from outside), it returns a *StuckError once they have been at the same place for
// patience, on the wall, and twenty times that if any of them runs. The bubble is then
// left behind, with all its goroutines.
func Watched(patience time.Duration, f func(begun func())) error {
	ended := make(chan struct{})
	var bubble atomic.Pointer[Goroutine]
	var moves atomic.Uint64
	seen := uint64(0)
	go func() {
		defer close(ended)
		f(func() {
			g := self()
			moving.Store(g.bubble, &moves)
			bubble.Store(&g)
		})
	}()
	pause := patience / looksInPatience
	looks := time.NewTicker(pause)
	defer looks.Stop()
	defer func() {
		if g := bubble.Load(); g != nil {
			moving.Delete(g.bubble)
		}
	}()
	m := &monitor{stacks: make([]byte, 1<<16), since: map[string]time.Duration{}}
	for {
		select {
		case <-ended:
			return nil
		case <-looks.C:
		}
		m.age += pause
		if g := bubble.Load(); g != nil {
			if n := moves.Load(); n != seen {
				seen = n
				clear(m.since)
				continue
			}
			m.self.bubble = g.bubble
			if stuck := m.stuck(m.busy(), patience); len(stuck) > 0 {
				return &StuckError{stuck}
			}
		}
	}
}

// moving are the counters of what happens in bubbles that are watched, by bubble.
var moving sync.Map // of *atomic.Uint64

// Moves returns what to call whenever something happens in the bubble of the calling
// goroutine. Then Watched need not look at the stacks of all goroutines, which takes a
// tenth of a second where there are thousands.
func Moves() (moved func()) {
	counter, ok := moving.Load(self().bubble)
	if !ok {
		return func() {}
	}
	return func() { counter.(*atomic.Uint64).Add(1) }
}

// looksInPatience is how often Watched looks at the goroutines before it gives up.
const looksInPatience = 4
