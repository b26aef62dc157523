package process

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"time"
	"unsafe"
)

// The pauses between two looks at the goroutines of a member.
const (
	firstPause = time.Millisecond
	maxPause   = 50 * time.Millisecond
)

// Wait returns when no goroutine of the member is left. Upstream gives no handle on
// the end of many; their label is the only way to see them. When the context ends
// first, the error holds the stacks that are left.
func (m *Member) Wait(ctx context.Context) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		left := m.goroutines()
		if len(left) == 0 {
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%d kinds of goroutines of %s have not ended:\n%s", len(left), m.name, strings.Join(left, "\n"))
		}
	}
}

// goroutines returns the profile entries of the member's goroutines.
func (m *Member) goroutines() []string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return []string{err.Error()}
	}
	pair := fmt.Sprintf("%q:%q", label, m.name)
	var left []string
	for entry := range strings.SplitSeq(profile.String(), "\n\n") {
		_, labels, ok := strings.Cut(entry, "# labels: ")
		if !ok {
			continue
		}
		labels, _, _ = strings.Cut(labels, "\n")
		if strings.Contains(labels, pair) && !ending(entry) {
			left = append(left, entry)
		}
	}
	return left
}

// ending says whether only the runtime has yet to end the goroutines of an entry.
func ending(entry string) bool {
	frames, ends := strings.Count(entry, "\n#\t0x"), strings.Count(entry, "\truntime.goexit")
	return frames > 0 && frames == ends
}

// goroutineLabels returns the label set of the calling goroutine, as runtime
// keeps it: children share their parent's pointer.
//
//go:linkname goroutineLabels runtime/pprof.runtime_getProfLabel
func goroutineLabels() unsafe.Pointer

// setGoroutineLabels puts back what goroutineLabels returned.
//
//go:linkname setGoroutineLabels runtime/pprof.runtime_setProfLabel
func setGoroutineLabels(labels unsafe.Pointer)
