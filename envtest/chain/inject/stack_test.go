package inject

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// TestGrowStack looks whether the stack of a new goroutine has moved after a deep call, with growStack before it
// and without.
func TestGrowStack(t *testing.T) {
	moves := func(before func()) bool {
		moved := make(chan bool)
		go func() {
			before()
			var here byte
			at := uintptr(unsafe.Pointer(&here))
			deep(16)
			moved <- uintptr(unsafe.Pointer(&here)) != at
		}()
		return <-moved
	}
	assert.False(t, moves(growStack), "with it")
	assert.True(t, moves(func() {}), "without")
}

// deep takes n KiB of the stack.
//
//go:noinline
func deep(n int) byte {
	var frame [1 << 10]byte
	if n > 1 {
		frame[n] = deep(n - 1)
	}
	return frame[n]
}
