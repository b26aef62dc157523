package virtualtime_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/envtest/virtualtime"
)

// A server on a socket, as of a webhook, keeps its bubble from moving.
func TestWatchedStuck(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	err = virtualtime.Watched(40*time.Millisecond, io.Discard, func(begun func()) {
		defer close(ended)
		synctest.Test(t, func(*testing.T) {
			begun()
			go func() { _, _ = listener.Accept() }()
			time.Sleep(time.Hour)
		})
	})
	var stuck *virtualtime.StuckError
	require.ErrorAs(t, err, &stuck)
	require.Len(t, stuck.Goroutines, 1)
	assert.Equal(t, "IO wait", stuck.Goroutines[0].State)
	assert.Contains(t, stuck.Goroutines[0].Func, "TestWatchedStuck")
	require.NoError(t, listener.Close())
	<-ended
}

// A control plane that records what happens is left alone, whatever its goroutines do.
func TestWatchedMoves(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	err = virtualtime.Watched(100*time.Millisecond, io.Discard, func(begun func()) {
		synctest.Test(t, func(*testing.T) {
			begun()
			moved := virtualtime.Moves()
			go func() {
				for range 40 { // on the wall: the reader keeps time from moving
					_ = exec.Command("sleep", "0.01").Run()
					moved()
				}
				_ = write.Close()
			}()
			_, _ = read.Read(make([]byte, 1))
		})
	})
	require.NoError(t, err)
	require.NoError(t, read.Close())
	virtualtime.Moves()() // outside, it counts nothing
}

// Who looks for idleness hears what is stuck, however long a busy machine makes that take.
func TestWatchedWhileIdle(t *testing.T) {
	if sim.Enabled() {
		t.Skip("what moves is counted by the runtime in sim mode")
	}
	var stuck *virtualtime.StuckError
	require.NoError(t, virtualtime.Watched(400*time.Millisecond, io.Discard, func(begun func()) {
		synctest.Test(t, func(t *testing.T) {
			begun()
			var mutex sync.Mutex
			mutex.Lock()
			var waiting sync.WaitGroup
			waiting.Go(func() { mutex.Lock() })
			assert.ErrorAs(t, virtualtime.Idle(t.Context(), time.Second), &stuck)
			mutex.Unlock()
			waiting.Wait()
		})
	}))
}

// Who pauses on purpose is left alone, for as long as it takes.
func TestWatchedPaused(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	paused := make(chan struct{})
	time.AfterFunc(200*time.Millisecond, func() {
		<-paused
		_ = write.Close()
	})
	require.NoError(t, virtualtime.Watched(20*time.Millisecond, io.Discard, func(begun func()) {
		synctest.Test(t, func(*testing.T) {
			begun()
			virtualtime.Paused(func() {
				close(paused)
				_, _ = read.Read(make([]byte, 1))
			})
		})
	}))
	require.NoError(t, read.Close())
}

// What moves is left alone, also if it takes longer than the patience.
func TestWatched(t *testing.T) {
	finished := false
	require.NoError(t, virtualtime.Watched(10*time.Millisecond, io.Discard, func(begun func()) {
		synctest.Test(t, func(*testing.T) {
			begun()
			for range 100_000 {
				slept := make(chan struct{})
				go func() { time.Sleep(time.Hour); close(slept) }()
				<-slept
			}
			finished = true
		})
	}))
	assert.True(t, finished)
	require.NoError(t, virtualtime.Watched(time.Hour, io.Discard, func(func()) { runtime.Goexit() }))
}
