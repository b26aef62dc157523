// Package virtualtime owns virtual time: a bubble in which time stands still while
// any goroutine runs and jumps to the next timer when none does, and the order in
// which concurrent operations proceed there. It is the standard library's
// testing/synctest, made usable from programs too.
package virtualtime

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

// Bubble runs f in a bubble and returns when f and every goroutine started inside
// have ended, in programs and in tests; f must not call T.Run or T.Parallel of an
// outer test. If all goroutines wait for ever, the error holds their stacks; if some
// wait for what virtual time can't bring, it is a *StuckError.
func Bubble(f func() error) error {
	var err error
	stuck := Watched(Patience, os.Stderr, func(begun func()) {
		err = enter(func() error {
			begun()
			return f()
		})
	})
	if stuck != nil {
		return stuck // err is still f's
	}
	return err
}

// checkTimers returns an error where timers are those of Go 1.22, with which testing/synctest panics.
func checkTimers() error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	if cap(timer.C) == 0 {
		return nil
	}
	return errors.New("there is no virtual time with asynctimerchan=1: take it out of GODEBUG, or, where a go.mod " +
		"or a main package asks for timers of before Go 1.23, add asynctimerchan=0 to GODEBUG")
}

func enter(f func() error) (err error) {
	var inside Goroutine
	defer func() {
		if reason := recover(); reason != nil {
			err = errors.Join(err, fmt.Errorf("virtual time: %v\n\n%s", reason, stacks(inside.bubble)))
		}
	}()
	finished := false
	synctest.Test(&testing.T{}, func(*testing.T) {
		inside = self()
		defer func() {
			// synctest would raise the panic on another goroutine and end the process.
			if reason := recover(); reason != nil {
				finished, err = true, fmt.Errorf("panic in virtual time: %v\n%s", reason, debug.Stack())
			}
		}()
		err = f()
		Grace()
		finished = true
	})
	if !finished && err == nil {
		return errors.New("virtual time: the function ended its goroutine (runtime.Goexit, t.FailNow) instead of returning")
	}
	return err
}

// grace is longer than client-go and the packages of the API server sleep between a look at their
// context and the next.
const grace = time.Minute

// Grace lets a minute go by in the bubble of the calling goroutine, which is about to leave it.
// Time stops there when the first goroutine ends, and those that wait for a timer before they
// end would wait for ever.
func Grace() { time.Sleep(grace) }

// Virtual reports whether the calling goroutine is in a bubble. The runtime tells
// only in the header of a goroutine's stack.
func Virtual() bool { return self().bubble != "" }

// Wait returns when every other goroutine of the bubble is durably blocked. It
// panics outside a bubble.
func Wait() { synctest.Wait() }
