package trace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		require.Len(t, recs, 2, "records")
		want := Record{Seq: 1, Time: recs[0].Time, Elapsed: 1005 * time.Millisecond, ControlPlane: "alpha", Event: Signal{"HasBeenReady"}}
		assert.True(t, recs[0] == want, "record %+v, want %+v", recs[0], want)
		assert.Equal(t, int64(2), r.Seq(), "Seq()")
		assert.Equal(t, int64(2), r.For("apiserver-0").Seq(), "Seq()")
		assert.Equal(t, int64(2), recs[1].Seq, "the second record")
		assert.Equal(t, time.Hour+1005*time.Millisecond, recs[1].Elapsed, "the second record")
		assert.True(t, recs[1].Time.Equal(time.Now()), "the second record is of %s", recs[1].Time)
		assert.Equal(t, "+1h0m1.005s note later", recs[1].String(), "String()")
	})
}

func TestRecorderIsBounded(t *testing.T) {
	r := NewRecorder("alpha", 3)
	for i := range 8 {
		r.Record(Note{fmt.Sprint(i)})
		recs := r.Records()
		want := min(i+1, 3)
		require.Len(t, recs, want, "%d records after %d, want %d", len(recs), i+1, want)
		for k, rec := range recs {
			assert.Equal(t, int64(i+2-len(recs)+k), rec.Seq, "after %d: record %d has Seq", i+1, k)
		}
	}
	assert.Equal(t, int64(5), r.Dropped(), "dropped")
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder("alpha", 0)
		r.Record(Signal{"first"})
		r.Record(Signal{"second"})
		anySignal := func(r Record) bool { _, ok := r.Event.(Signal); return ok }
		rec, err := r.Await(t.Context(), anySignal)
		assert.False(t, err != nil || rec.Seq != 1, "past: %v, %v; want the first match", rec, err)
		go func() {
			time.Sleep(time.Minute)
			r.Record(Signal{"other"})
			time.Sleep(time.Minute)
			r.Record(Signal{"future"})
			r.Record(Signal{"future"})
		}()
		start := time.Now()
		rec, err = r.Await(t.Context(), isSignal("future"))
		assert.False(t, err != nil || rec.Seq != 4 || time.Since(start) != 2*time.Minute, "future: %v, %v after %v", rec, err, time.Since(start))
		synctest.Wait()
		assert.Empty(t, r.waiters)
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
		require.ErrorIs(t, err, cause, "error")
		for _, want := range []string{`"alpha"`, "crd-informer-synced did not end", "signal ShutdownInitiated"} {
			assert.Contains(t, err.Error(), want, "error")
		}
		assert.Empty(t, r.waiters)
	})
}

func TestSubscribe(t *testing.T) {
	r := NewRecorder("alpha", 0)
	r.Record(Note{"before"})
	var received []int64
	cancel := r.Subscribe(func(rec Record) {
		received = append(received, rec.Seq)
		placed := r.Records()[rec.Seq-1] // others may have recorded since
		assert.True(t, placed == rec, "received %v while its place in the records has %v", rec, placed)
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
	require.Len(t, received, 800, "received")
	for i, seq := range received {
		require.Equal(t, int64(i+2), seq, "received record %d at place %d", seq, i)
	}
	assert.False(t, len(once) != 1 || once[0] != 2, "a subscriber that cancelled itself received %v", once)
}

// Many goroutines each wait for one event while many record; none misses its own.
func TestAwaitUnderLoad(t *testing.T) {
	r := NewRecorder("alpha", 10_000)
	var all sync.WaitGroup
	for i := range 50 {
		name := fmt.Sprint(i)
		all.Go(func() {
			rec, err := r.Await(t.Context(), isSignal(name))
			assert.False(t, err != nil || rec.Event != (Signal{name}), "%s: %v, %v", name, rec, err)
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
