package virtualtime_test

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/envtest/virtualtime"
)

const ages = time.Hour // wall time, longer than any test waits

func TestIdleInTime(t *testing.T) {
	err := virtualtime.Bubble(func() error {
		var done atomic.Int64
		start := time.Now()
		turns := make(chan int)
		go func() {
			for range turns {
				done.Add(1)
			}
		}()
		go func() {
			defer close(turns)
			for i := range 1000 {
				turns <- i
				runtime.Gosched()
			}
		}()
		time.AfterFunc(0, func() { done.Add(1) }) // due now, though it takes a timer
		later := time.AfterFunc(time.Second, func() { done.Add(1) })
		defer later.Stop()
		if err := virtualtime.Idle(t.Context(), ages); err != nil {
			return err
		}
		assert.EqualValues(t, 1001, done.Load())
		assert.Zero(t, time.Since(start), "looking took virtual time")
		return nil
	})
	require.NoError(t, err)
}

// A goroutine that waits for the bubble to become idle is not woken by Rest.
func TestRestBesideWait(t *testing.T) {
	require.NoError(t, virtualtime.Bubble(func() error {
		var woken atomic.Bool
		go func() {
			virtualtime.Wait()
			woken.Store(true)
		}()
		err := virtualtime.Rest(t.Context(), ages)
		assert.False(t, woken.Load())
		time.Sleep(time.Nanosecond)
		assert.True(t, woken.Load())
		return err
	}))
}

func TestIdleOutside(t *testing.T) {
	assert.ErrorContains(t, virtualtime.Idle(t.Context(), ages), "the caller is not in a bubble")
}

// blocker blocks a goroutine of a bubble so that the bubble never becomes idle, and
// frees it again.
type blocker struct {
	block, free func()
	state, by   string
}

func blockers(t *testing.T) map[string]blocker {
	var mutex sync.Mutex
	outside := make(chan struct{})
	read, write, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = read.Close() })
	return map[string]blocker{
		"mutex":   {func() { waitForMutex(&mutex) }, mutex.Unlock, "sync.Mutex.Lock", "virtualtime_test.waitForMutex"},
		"channel": {func() { waitForChannel(outside) }, func() { close(outside) }, "chan receive", "virtualtime_test.waitForChannel"},
		"file":    {func() { waitForFile(read) }, func() { _ = write.Close() }, "IO wait", "virtualtime_test.waitForFile"},
	}
}

func waitForMutex(m *sync.Mutex)       { m.Lock() }
func waitForChannel(c <-chan struct{}) { <-c }
func waitForFile(r io.Reader)          { _, _ = r.Read(make([]byte, 1)) }

// If the bubble can't become idle, the error names the line.
func TestIdleStuck(t *testing.T) {
	for _, name := range []string{"mutex", "channel", "file"} {
		t.Run(name, func(t *testing.T) {
			b := blockers(t)[name]
			if name == "mutex" {
				// Lock it outside the bubble.
				taken := make(chan struct{})
				go func() { b.block(); close(taken) }()
				<-taken
			}
			require.NoError(t, virtualtime.Bubble(func() error {
				ended := make(chan struct{})
				go func() { b.block(); close(ended) }()
				err := virtualtime.Idle(t.Context(), 20*time.Millisecond)
				var stuck *virtualtime.StuckError
				if assert.ErrorAs(t, err, &stuck) && assert.Len(t, stuck.Goroutines, 1) {
					assert.Equal(t, b.state, stuck.Goroutines[0].State)
					assert.Contains(t, stuck.Goroutines[0].Func, b.by)
					assert.Regexp(t, `idle_test\.go:\d+$`, stuck.Goroutines[0].Line)
				}
				assert.ErrorContains(t, err, b.by)
				b.free()
				<-ended
				return virtualtime.Idle(t.Context(), ages)
			}))
		})
	}
}

// A goroutine that never stops running is named too, after a while.
func TestIdleBusy(t *testing.T) {
	if sim.Enabled() {
		t.Skip("it keeps who would name it from running: see TestSpins")
	}
	require.NoError(t, virtualtime.Bubble(func() error {
		var enough atomic.Bool
		go func() {
			for !enough.Load() {
			}
		}()
		err := virtualtime.Idle(t.Context(), time.Millisecond)
		enough.Store(true)
		assert.ErrorContains(t, err, "TestIdleBusy")
		return nil
	}))
}

func TestIdleGivesUp(t *testing.T) {
	require.NoError(t, virtualtime.Bubble(func() error {
		outside, cancel := context.WithCancelCause(context.Background())
		enough := errors.New("enough")
		cancel(enough)
		var mutex sync.Mutex
		mutex.Lock()
		go mutex.Lock()
		assert.ErrorIs(t, virtualtime.Idle(outside, ages), enough)
		mutex.Unlock()
		return nil
	}))
}
