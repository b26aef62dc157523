// Package virtualtime owns virtual time: a bubble in which time stands still while
// anything runs and jumps to the next timer when nothing does. It is the
// standard library's testing/synctest, made usable from programs too.
package virtualtime

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
)

// Bubble runs f in a bubble and returns when f has returned and every goroutine
// that was started inside has ended. It works in programs and in tests; inside
// f neither T.Run nor T.Parallel of an outer test may be called. A bubble in
// which all goroutines wait for ever ends in an error that holds their stacks.
func Bubble(f func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = errors.Join(err, fmt.Errorf("virtual time: %v", reason))
		}
	}()
	finished := false
	synctest.Test(&testing.T{}, func(*testing.T) {
		defer func() {
			// A panic in a bubble would end the process from the wrong goroutine.
			if reason := recover(); reason != nil {
				finished, err = true, fmt.Errorf("panic in virtual time: %v\n%s", reason, debug.Stack())
			}
		}()
		err = f()
		finished = true
	})
	if !finished && err == nil {
		return errors.New("virtual time: the function ended its goroutine instead of returning")
	}
	return err
}

// Virtual reports whether the calling goroutine is in a bubble: the header of
// its stack says so.
func Virtual() bool {
	var header [128]byte
	line, _, _ := bytes.Cut(header[:runtime.Stack(header[:], false)], []byte("\n"))
	return bytes.Contains(line, []byte("synctest bubble"))
}

// Wait returns when every other goroutine of the bubble is blocked. It panics
// outside a bubble.
func Wait() { synctest.Wait() }
