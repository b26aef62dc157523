package virtualtime

import (
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"

	"snowglobe.test/internal/typename"
)

// counts are where the runtime counts what keeps a bubble from being idle: goroutines that are not
// durably blocked, and what it does itself for a moment. A look at them takes nanoseconds. The stacks of
// all goroutines say the same, but printing them takes ten milliseconds and stops the process.
type counts struct{ running, active *int64 }

// bubbleCounts returns those of the calling goroutine's bubble; nil outside one, or if the runtime is
// not the one that this package knows.
func bubbleCounts() *counts {
	at := offsetsOfCounts()
	if at == nil {
		return nil
	}
	channel := make(chan struct{}) // knows the bubble in which it was made
	bubble := *(*unsafe.Pointer)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&channel)), at.bubble))
	if bubble == nil {
		return nil
	}
	return &counts{
		running: (*int64)(unsafe.Add(bubble, at.running)),
		active:  (*int64)(unsafe.Add(bubble, at.active)),
	}
}

// alone reports whether every other goroutine of the bubble is durably blocked. No other can change that
// then: only the caller, its timers and what is outside the bubble could wake one.
func (c *counts) alone() bool {
	return c != nil && atomic.LoadInt64(c.running) == 1 && atomic.LoadInt64(c.active) == 0
}

// offsets are those of a channel's bubble, and of the counts in the bubble.
type offsets struct{ bubble, running, active uintptr }

var offsetsOfCounts = sync.OnceValue(func() *offsets {
	for _, channel := range typename.Find("runtime.hchan") {
		bubble, ok := channel.FieldByName("bubble")
		if !ok || bubble.Type.Kind() != reflect.Pointer || bubble.Type.Elem().Kind() != reflect.Struct {
			continue
		}
		running, haveRunning := bubble.Type.Elem().FieldByName("running")
		active, haveActive := bubble.Type.Elem().FieldByName("active")
		if haveRunning && haveActive && running.Type == count && active.Type == count && count.Size() == 8 {
			return &offsets{bubble.Offset, running.Offset, active.Offset}
		}
	}
	return nil
})

// count is the type that the runtime counts with.
var count = reflect.TypeFor[int]()
