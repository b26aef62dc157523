package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func isSignal(name string) func(Record) bool {
	return func(r Record) bool { return r.Event == Signal{Name: name} }
}

func TestRecorderKeepsOrderAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder("alpha", 0)
		time.Sleep(1005 * time.Millisecond)
		r.Record(Signal{"HasBeenReady"})
		time.Sleep(time.Hour)
		r.Record(Note{"later"})
		recs := r.Records()
		if len(recs) != 2 {
			t.Fatalf("records %v", recs)
		}
		want := Record{Seq: 1, Time: recs[0].Time, Elapsed: 1005 * time.Millisecond, ControlPlane: "alpha", Event: Signal{"HasBeenReady"}}
		if recs[0] != want {
			t.Errorf("record %+v, want %+v", recs[0], want)
		}
		if r.Seq() != 2 || r.For("apiserver-0").Seq() != 2 {
			t.Errorf("Seq() = %d, want 2", r.Seq())
		}
		if recs[1].Seq != 2 || recs[1].Elapsed != time.Hour+1005*time.Millisecond || !recs[1].Time.Equal(time.Now()) {
			t.Errorf("record %+v", recs[1])
		}
		if s := recs[1].String(); s != "+1h0m1.005s note later" {
			t.Errorf("String() = %q", s)
		}
	})
}

func TestRecorderIsBounded(t *testing.T) {
	r := NewRecorder("alpha", 3)
	for i := range 8 {
		r.Record(Note{fmt.Sprint(i)})
		recs := r.Records()
		if want := min(i+1, 3); len(recs) != want {
			t.Fatalf("%d records after %d, want %d", len(recs), i+1, want)
		}
		for k, rec := range recs {
			if rec.Seq != int64(i+2-len(recs)+k) {
				t.Errorf("after %d: record %d has Seq %d", i+1, k, rec.Seq)
			}
		}
	}
	if r.Dropped() != 5 {
		t.Errorf("dropped %d, want 5", r.Dropped())
	}
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder("alpha", 0)
		r.Record(Signal{"first"})
		r.Record(Signal{"second"})
		anySignal := func(r Record) bool { _, ok := r.Event.(Signal); return ok }
		if rec, err := r.Await(t.Context(), anySignal); err != nil || rec.Seq != 1 {
			t.Errorf("past: %v, %v; want the first match", rec, err)
		}
		go func() {
			time.Sleep(time.Minute)
			r.Record(Signal{"other"})
			time.Sleep(time.Minute)
			r.Record(Signal{"future"})
			r.Record(Signal{"future"})
		}()
		start := time.Now()
		rec, err := r.Await(t.Context(), isSignal("future"))
		if err != nil || rec.Seq != 4 || time.Since(start) != 2*time.Minute {
			t.Errorf("future: %v, %v after %v", rec, err, time.Since(start))
		}
		synctest.Wait()
		if len(r.waiters) != 0 {
			t.Errorf("%d waiters left behind", len(r.waiters))
		}
	})
}

func TestAwaitGivesUpWithTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder("alpha", 0)
		r.Record(Signal{"ShutdownInitiated"})
		cause := errors.New("crd-informer-synced did not end in 30s")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Second, cause)
		defer cancel()
		_, err := r.Await(ctx, isSignal("never"))
		if !errors.Is(err, cause) {
			t.Fatalf("error %v does not wrap the cause", err)
		}
		for _, want := range []string{`"alpha"`, "crd-informer-synced did not end", "signal ShutdownInitiated"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %s", err, want)
			}
		}
		if len(r.waiters) != 0 {
			t.Errorf("%d waiters left behind", len(r.waiters))
		}
	})
}

func TestSubscribe(t *testing.T) {
	r := NewRecorder("alpha", 0)
	r.Record(Note{"before"})
	var received []int64
	cancel := r.Subscribe(func(rec Record) {
		received = append(received, rec.Seq)
		if recs := r.Records(); recs[rec.Seq-1] != rec { // others may have recorded since
			t.Errorf("received %v while its place in the records has %v", rec, recs[rec.Seq-1])
		}
	})
	var once []int64
	var cancelOnce func()
	cancelOnce = r.Subscribe(func(rec Record) { once = append(once, rec.Seq); cancelOnce() })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				r.Record(Note{"x"})
			}
		})
	}
	all.Wait()
	cancel()
	cancel()
	r.Record(Note{"after"})
	if len(received) != 800 {
		t.Fatalf("received %d records, want 800", len(received))
	}
	for i, seq := range received {
		if seq != int64(i+2) {
			t.Fatalf("received record %d at place %d", seq, i)
		}
	}
	if len(once) != 1 || once[0] != 2 {
		t.Errorf("a subscriber that cancelled itself received %v", once)
	}
}

// Many goroutines each wait for one event while many record; none misses its own.
func TestAwaitUnderLoad(t *testing.T) {
	r := NewRecorder("alpha", 10_000)
	var all sync.WaitGroup
	for i := range 50 {
		name := fmt.Sprint(i)
		all.Go(func() {
			if rec, err := r.Await(t.Context(), isSignal(name)); err != nil || rec.Event != (Signal{name}) {
				t.Errorf("%s: %v, %v", name, rec, err)
			}
		})
		all.Go(func() {
			for range 20 {
				r.Record(Note{name})
			}
			r.Record(Signal{name})
		})
	}
	all.Wait()
}
