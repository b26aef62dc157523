// Package bubbled has tests that were not written for a bubble of virtual time.
package bubbled

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func inBubble() bool { return time.Now().Year() == 2000 }

func TestSleeps(t *testing.T) {
	if inBubble() {
		time.Sleep(time.Hour)
	}
	t.Logf("drawn: %d", rand.Uint64())
	_, limited := t.Deadline()
	assert.False(t, limited && inBubble(), "there is no limit in virtual time")
}

func TestSubtests(t *testing.T) {
	begun := time.Now()
	t.Run("one", func(*testing.T) {})
	var mu sync.Mutex
	for range 1000 {
		mu.Lock()
		mu.Unlock()
	}
	t.Logf("time passes: %t", time.Since(begun) > 0)
}

// TestSpinners waits in loops for a goroutine that sleeps.
func TestSpinners(t *testing.T) {
	if !inBubble() {
		return
	}
	for range 20 {
		var mu sync.RWMutex
		var ended atomic.Bool
		var rounds atomic.Int64
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				for !ended.Load() && rounds.Add(1) < 5_000_000 {
					mu.RLock()
					mu.RUnlock()
				}
			})
		}
		all.Go(func() {
			time.Sleep(10 * time.Millisecond)
			ended.Store(true)
		})
		all.Wait()
		t.Logf("rounds: %d", rounds.Load())
		assert.Less(t, rounds.Load(), int64(200_000))
	}
}

func TestOutside(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { assert.NoError(t, listener.Close()) }()
	if !inBubble() {
		return
	}
	go func() {
		_, err := listener.Accept()
		assert.Error(t, err)
	}()
	time.Sleep(time.Hour)
}

func TestParallel(t *testing.T) {
	t.Parallel()
	assert.False(t, inBubble())
}

func TestOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Logf("drawn: %d", rand.Uint64())
		assert.True(t, inBubble())
	})
}
