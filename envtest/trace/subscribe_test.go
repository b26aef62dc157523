package trace

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// returns fails the test if f hangs.
func returns(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("hangs")
	}
}

// TestSubscribersMayCallTheRecorder calls each method from a subscriber.
func TestSubscribersMayCallTheRecorder(t *testing.T) {
	for name, call := range map[string]func(*testing.T, *Recorder, Record){
		"Record":    func(_ *testing.T, r *Recorder, _ Record) { r.Record(Note{"answer"}) },
		"Records":   func(_ *testing.T, r *Recorder, _ Record) { r.Records() },
		"Dropped":   func(_ *testing.T, r *Recorder, _ Record) { r.Dropped() },
		"Subscribe": func(_ *testing.T, r *Recorder, _ Record) { r.Subscribe(func(Record) {})() },
		"For":       func(_ *testing.T, r *Recorder, _ Record) { r.For("other").Record(Note{"answer"}) },
		"Await": func(t *testing.T, r *Recorder, rec Record) {
			found, err := r.Await(t.Context(), func(other Record) bool { return other.Seq == rec.Seq })
			assert.NoError(t, err, "found %v, %v; want %v", found, err, rec)
			assert.True(t, found == rec, "found %v, %v; want %v", found, err, rec)
		},
		// The subscriber waits for a goroutine that records.
		"Record elsewhere": func(_ *testing.T, r *Recorder, _ Record) {
			var other sync.WaitGroup
			other.Go(func() { r.Record(Note{"answer"}) })
			other.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRecorder("alpha", 0)
			r.Subscribe(func(rec Record) {
				if rec.Event == (Note{"question"}) {
					call(t, r, rec)
				}
			})
			returns(t, func() { r.Record(Note{"question"}) })
		})
	}
}

// TestSubscribersKeepTheOrder records from within a subscriber: the others
// receive that event afterwards, and all of them in the same order.
func TestSubscribersKeepTheOrder(t *testing.T) {
	r := NewRecorder("alpha", 0)
	received := map[string][]string{}
	listen := func(name string, answer bool) {
		r.Subscribe(func(rec Record) {
			received[name] = append(received[name], rec.Event.String())
			if answer && rec.Seq < 3 {
				r.Record(Note{fmt.Sprintf("answer to %d", rec.Seq)})
			}
		})
	}
	listen("first", true)
	listen("second", false)
	returns(t, func() { r.Record(Note{"question"}) })
	want := []string{"note question", "note answer to 1", "note answer to 2"}
	for name, got := range received {
		assert.True(t, slices.Equal(got, want), "the %s subscriber received %q, want %q", name, got, want)
	}
}

// A subscriber that panics receives nothing twice, and later records are still
// delivered.
func TestSubscriberPanics(t *testing.T) {
	r := NewRecorder("alpha", 0)
	var received []int64
	r.Subscribe(func(rec Record) {
		received = append(received, rec.Seq)
		if rec.Seq == 1 {
			panic("first")
		}
	})
	func() {
		defer func() { _ = recover() }()
		r.Record(Note{"one"})
	}()
	returns(t, func() { r.Record(Note{"two"}) })
	want := []int64{1, 2}
	assert.True(t, slices.Equal(received, want), "received %v, want %v", received, want)
}
