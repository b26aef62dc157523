package process

import (
	"context"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"snowglobe.test/internal/left"
)

// The pauses before each look at the goroutines of a member, which is costly: a long wait is
// made longer by no more than a sixteenth.
const (
	firstPause = time.Millisecond
	maxPause   = 50 * time.Millisecond
	longWait   = 16
)

// Wait returns when no goroutine of the member is left. Upstream gives no handle on
// the end of many; their label is the only way to see them. When the context ends
// first, the error names those that are left, as Left does. A look at them costs much where
// there are many others, and most have yet to end when Wait is called, so it pauses first.
func (m *Member) Wait(ctx context.Context) error {
	began := time.Now()
	for pause := firstPause; ; pause = max(min(2*pause, maxPause), time.Since(began)/longWait) {
		given := true
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			given = false
		}
		there, sure := m.there()
		if there && given {
			continue
		}
		if !there && sure {
			return nil
		}
		found := goroutinesOf(m.name)
		if len(found) == 0 {
			return nil
		}
		if !given {
			count, report := left.Describe(found)
			return fmt.Errorf("goroutines of %s have not ended (%d in all):\n%s", m.name, count, report)
		}
	}
}

// there says whether goroutines of the member are there, for a fraction of what the text of the
// profile costs. It cannot read labels, only compare them, so that there are none is not sure
// where a program has added some, nor beside goroutines of members that have left.
func (m *Member) there() (there, sure bool) {
	known := map[unsafe.Pointer]bool{nil: true, steady.labels: true}
	sure = true
	for _, set := range goroutineLabelSets() {
		if set == m.labels {
			return true, true
		}
		if _, seen := known[set]; !seen {
			_, known[set] = shared.byLabels.Load(set)
		}
		sure = sure && known[set]
	}
	return false, sure
}

// goroutineLabelSets returns the label sets of all goroutines, as runtime keeps them.
func goroutineLabelSets() []unsafe.Pointer {
	for n := runtime.NumGoroutine(); ; {
		n += n/8 + 10 // others are started meanwhile
		stacks, labels := make([]stackRecord, n), make([]unsafe.Pointer, n)
		var complete bool
		if n, complete = goroutineProfile(stacks, labels); complete {
			return labels[:n]
		}
	}
}

// stackRecord is internal/profilerecord.StackRecord.
type stackRecord struct{ _ []uintptr }

// goroutineProfile fills in the profile that the text is made of.
//
//go:linkname goroutineProfile runtime.pprof_goroutineProfileWithLabels
func goroutineProfile(stacks []stackRecord, labels []unsafe.Pointer) (n int, complete bool)

// Left names the goroutines of the member with a name that there are.
func Left(name string) (count int, report string) {
	return left.Describe(goroutinesOf(name))
}

// goroutinesOf returns the profile entries of a member's goroutines.
func goroutinesOf(name string) []string { return left.Labelled(label, name) }

// goroutineLabels returns the label set of the calling goroutine, as runtime
// keeps it: children share their parent's pointer.
//
//go:linkname goroutineLabels runtime/pprof.runtime_getProfLabel
func goroutineLabels() unsafe.Pointer

// setGoroutineLabels puts back what goroutineLabels returned.
//
//go:linkname setGoroutineLabels runtime/pprof.runtime_setProfLabel
func setGoroutineLabels(labels unsafe.Pointer)
