package virtualtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"snowglobe.test/envtest/sim"
)

const (
	// minPause and maxPause bound the wall time between two looks at goroutines.
	minPause = time.Millisecond
	maxPause = 50 * time.Millisecond
	// maxUnlooked is how long, in wall time, no look is taken because goroutines of the process
	// wait for a CPU. After that they are ignored: they may be of other bubbles.
	maxUnlooked = 100 * time.Millisecond
	// quickLooks is how often Rest lets other goroutines run before it takes wall time.
	quickLooks = 100
	// runningFactor multiplies the patience while any goroutine runs: it may unblock others.
	runningFactor = 20
)

// ErrStandstill is what errors wrap that say why virtual time does not move.
var ErrStandstill = errors.New("virtual time stands still")

// StuckError says why virtual time stands still for ever: these goroutines of the
// bubble wait for something outside it, or for a mutex whose holder waits.
type StuckError struct{ Goroutines []Goroutine }

// Error names each goroutine and the line it is at.
func (e *StuckError) Error() string {
	return ErrStandstill.Error() + ": " + names(e.Goroutines) +
		" (a server on a socket: serve it in memory, as envtest's Webhooks do; a mutex: do not wait while holding one, or use WithoutLatency if a library does, with WithSeed in sim mode only; a channel: make it inside the bubble; a file that is watched: look at it now and then)"
}

// Unwrap returns ErrStandstill.
func (e *StuckError) Unwrap() error { return ErrStandstill }

func names(goroutines []Goroutine) string {
	all := make([]string, len(goroutines))
	for i, g := range goroutines {
		all[i] = g.String()
	}
	return strings.Join(all, "; ")
}

// Idle returns when every other goroutine of the bubble is blocked, like Wait.
// Where Wait hangs because a goroutine waits for what virtual time can't bring,
// Idle returns a *StuckError once goroutines have been at the same place for
// patience, in wall time. A look at the goroutines takes no virtual time, and some
// ten milliseconds of wall time if there are thousands. Only one goroutine of a
// bubble may call Idle or Wait at a time.
func Idle(ctx context.Context, patience time.Duration) error {
	if err := Rest(ctx, patience); err != nil {
		return err
	}
	synctest.Wait() // goroutines whose timers are due now run first
	return nil
}

// Rest is Idle for use beside a Scheduler, which itself calls Wait: it returns when
// every other goroutine of the bubble is blocked for the moment. Timers may be due,
// and a goroutine in Wait is not woken.
func Rest(ctx context.Context, patience time.Duration) error {
	if sim.Yield(); sim.Alone() {
		return nil
	}
	var here *counts
	if !sim.Enabled() {
		here = bubbleCounts()
	}
	for i := 0; here != nil && i < quickLooks; i++ {
		if here.alone() {
			return nil
		}
		runtime.Gosched()
	}
	m, err := newMonitor()
	if err != nil {
		return err
	}
	defer m.close()
	moved := movesOf(m.self.bubble) // keeps Watched from giving up before the caller gets the StuckError
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		moved()
		if here.alone() {
			return nil
		}
		if !anyRunnable() || m.age >= maxUnlooked {
			if rests, err := m.look(ctx, patience); rests || err != nil {
				return err
			}
		}
		if err := m.pause(pause); err != nil {
			return err
		}
		sim.Yield()
	}
}

// look reports whether every other goroutine of the bubble is blocked. If some are not, it
// returns an error that names them once ctx has ended, or once they have been at the same place
// for patience.
func (m *monitor) look(ctx context.Context, patience time.Duration) (rests bool, err error) {
	busy := m.busy()
	switch {
	case len(busy) == 0:
		return true, nil
	case ctx.Err() != nil:
		return false, fmt.Errorf("%s: %w", names(busy), context.Cause(ctx))
	}
	if stuck := m.stuck(busy, patience); len(stuck) > 0 {
		return false, &StuckError{stuck}
	}
	return false, nil
}

// anyRunnable reports whether any goroutine of the process waits for a CPU. That takes
// microseconds, while a look takes 70 ms where there are 4,000 goroutines, and stops them all.
func anyRunnable() bool {
	runnable := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
	metrics.Read(runnable)
	return runnable[0].Value.Uint64() > 0
}

// restOrHeldUp returns when every other goroutine of the bubble is durably blocked, or waits
// for a mutex. It needs sim mode.
func restOrHeldUp(ctx context.Context) (heldUp bool, err error) {
	m := &monitor{}
	defer m.close()
	for {
		switch sim.Yield(); {
		case sim.Alone():
			return false, nil
		case sim.HeldUp():
			return true, nil
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		}
		if err := m.pause(minPause); err != nil {
			return false, err
		}
	}
}

// monitor looks at the goroutines of a bubble from inside, repeatedly.
type monitor struct {
	self   Goroutine
	stacks []byte
	age    time.Duration            // wall time since the first look
	since  map[string]time.Duration // the age at which a goroutine was first seen where it is
	read   *os.File                 // of a pipe that nothing is written to
	write  *os.File
}

func newMonitor() (*monitor, error) {
	m := &monitor{self: self(), stacks: make([]byte, 1<<20), since: map[string]time.Duration{}}
	if m.self.bubble == "" {
		return nil, errors.New("there is no virtual time here: the caller is not in a bubble")
	}
	return m, nil
}

// busy returns the bubble's other goroutines that run or may be woken from outside.
func (m *monitor) busy() (busy []Goroutine) {
	for _, g := range m.goroutines() {
		if g.bubble == m.self.bubble && g.id != m.self.id && !strings.HasSuffix(g.State, durable) {
			busy = append(busy, g)
		}
	}
	return busy
}

// stuck returns those of busy that have been at the same place for patience, or runningFactor
// times as long if any of them runs.
func (m *monitor) stuck(busy []Goroutine, patience time.Duration) (stuck []Goroutine) {
	since := map[string]time.Duration{}
	if slices.ContainsFunc(busy, func(g Goroutine) bool { return g.pauses }) {
		m.since = since // a goroutine in Paused keeps the bubble from moving on purpose
		return nil
	}
	if slices.ContainsFunc(busy, Goroutine.runs) {
		patience *= runningFactor
	}
	for _, g := range busy {
		where := g.String()
		first, known := m.since[where]
		if !known {
			first = m.age
		}
		since[where] = first
		if m.age-first >= patience {
			stuck = append(stuck, g)
		}
	}
	m.since = since
	return stuck
}

// pause lets wall time pass, by a file's deadline: a timer would be in the bubble.
func (m *monitor) pause(d time.Duration) (err error) {
	if m.read == nil {
		if m.read, m.write, err = os.Pipe(); err != nil {
			return fmt.Errorf("wait for the bubble to become idle: %w", err)
		}
	}
	m.age += d
	if err = m.read.SetReadDeadline(time.Now().Add(d)); err == nil {
		_, err = m.read.Read(make([]byte, 1))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("wait for the bubble to become idle: %w", err)
	}
	return nil
}

func (m *monitor) close() {
	if m.read != nil {
		_ = m.read.Close()
		_ = m.write.Close()
	}
}
