package virtualtime_test

import (
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/virtualtime"
)

// A server on a socket, as of a webhook, keeps its bubble from moving.
func TestWatchedStuck(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	err = virtualtime.Watched(40*time.Millisecond, func(begun func()) {
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
	err = virtualtime.Watched(100*time.Millisecond, func(begun func()) {
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
	virtualtime.Moves()() // outside, nobody counts
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
	require.NoError(t, virtualtime.Watched(20*time.Millisecond, func(begun func()) {
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
	require.NoError(t, virtualtime.Watched(10*time.Millisecond, func(begun func()) {
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
	require.NoError(t, virtualtime.Watched(time.Hour, func(func()) { runtime.Goexit() }))
}
