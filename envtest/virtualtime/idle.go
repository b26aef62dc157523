package virtualtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing/synctest"
	"time"
)

// How long Idle lets pass on the wall between two looks at the goroutines, at
// first and at most, and how much more patience it has with what runs than with
// what is blocked.
const (
	firstPause  = time.Millisecond
	longPause   = 50 * time.Millisecond
	runningMore = 6
)

// StuckError is why virtual time stands still for ever: goroutines of the bubble
// that wait for what is outside of it, or for a mutex whose holder waits.
type StuckError struct{ Goroutines []Goroutine }

// Error names each goroutine and the line where it is.
func (e *StuckError) Error() string {
	stuck := make([]string, len(e.Goroutines))
	for i, g := range e.Goroutines {
		stuck[i] = g.String()
	}
	return "virtual time stands still: " + strings.Join(stuck, "; ") +
		" (a mutex must not be held by one who waits, and a channel or a connection must be made where it is waited for)"
}

// Idle returns when every other goroutine of the bubble is blocked, as Wait does.
// Wait hangs for ever if one is blocked on what no virtual time brings; Idle looks
// at all of them, and when some have been at the same place for patience, on the
// wall, it returns a *StuckError. A look takes some ten milliseconds of the wall
// where there are thousands of goroutines, and no virtual time. As with Wait,
// nobody else may be in it.
func Idle(ctx context.Context, patience time.Duration) error {
	if err := Rest(ctx, patience); err != nil {
		return err
	}
	synctest.Wait() // who is due now goes first; nothing else can happen
	return nil
}

// Rest is Idle without the last word, so that it goes together with a Scheduler:
// it returns when every other goroutine of the bubble is blocked for the moment.
// Some may be due, and some may wait for all to be blocked.
func Rest(ctx context.Context, patience time.Duration) error {
	w, err := newWatchman()
	if err != nil {
		return err
	}
	defer w.close()
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		busy := w.busy()
		switch {
		case len(busy) == 0:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if stuck := w.stuck(busy, patience); len(stuck) > 0 {
			return &StuckError{stuck}
		}
		if err := w.pause(pause); err != nil {
			return err
		}
	}
}

// watchman looks at the goroutines of a bubble from within, again and again.
type watchman struct {
	self   Goroutine
	stacks []byte
	age    time.Duration // on the wall, since the first look
	since  map[string]time.Duration
	read   *os.File // a pipe on which nothing comes
	write  *os.File
}

func newWatchman() (*watchman, error) {
	w := &watchman{self: self(), stacks: make([]byte, 1<<20), since: map[string]time.Duration{}}
	if w.self.bubble == "" {
		return nil, errors.New("there is no virtual time here: the caller is in no bubble")
	}
	return w, nil
}

// busy returns who else in the bubble runs, or is blocked so that not only the
// bubble can wake it.
func (w *watchman) busy() (busy []Goroutine) {
	for _, g := range w.goroutines() {
		if g.bubble == w.self.bubble && g.id != w.self.id && !strings.HasSuffix(g.State, durable) {
			busy = append(busy, g)
		}
	}
	return busy
}

// stuck returns those that have been where they are for patience; while some run,
// the others may yet go on.
func (w *watchman) stuck(busy []Goroutine, patience time.Duration) (stuck []Goroutine) {
	since := map[string]time.Duration{}
	for _, g := range busy {
		if g.runs() {
			patience *= runningMore
			break
		}
	}
	for _, g := range busy {
		where := g.String()
		first, known := w.since[where]
		if !known {
			first = w.age
		}
		since[where] = first
		if w.age-first >= patience {
			stuck = append(stuck, g)
		}
	}
	w.since = since
	return stuck
}

// pause lets time pass on the wall. A timer would be one of the bubble; the
// deadline of a file is not.
func (w *watchman) pause(d time.Duration) (err error) {
	if w.read == nil {
		if w.read, w.write, err = os.Pipe(); err != nil {
			return fmt.Errorf("wait for the bubble to fall idle: %w", err)
		}
	}
	w.age += d
	if err := w.read.SetReadDeadline(time.Now().Add(d)); err != nil {
		return fmt.Errorf("wait for the bubble to fall idle: %w", err)
	}
	if _, err := w.read.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("wait for the bubble to fall idle: %w", err)
	}
	return nil
}

func (w *watchman) close() {
	if w.read != nil {
		_ = w.read.Close()
		_ = w.write.Close()
	}
}
