package fault

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOnFire fires a signal when a rule says so, which no hold keeps from it, and which counts
// for no other rule.
func TestOnFire(t *testing.T) {
	signal := Operation{Point: SignalPoint + "HasBeenReady"}
	for rule, want := range map[string][]time.Duration{
		"fire signal/HasBeenReady":                       {0},
		"fire signal/* server=a":                         {0},
		"fire signal/HasBeenReady by=3s":                 {3 * time.Second},
		"fire signal/HasBeenReady after=5s by=3s":        {5 * time.Second},
		"fire signal/HasBeenReady until=2s by=3s":        nil,
		"fire signal/HasBeenReady server=b":              nil,
		"fire signal/MuxAndDiscoveryComplete":            nil,
		"hold signal/HasBeenReady":                       nil,
		"fire signal/HasBeenReady after=1s for=1s":       {time.Second},
		"fire signal/HasBeenReady by=2s after=1ms":       {2 * time.Second},
		"fire signal/HasBeenReady server=a by=1m30s":     nil,
		"partition store server=a after=1s for=1s":       nil,
		"fire signal/HasBeenReady server=a until=10000h": {0},
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := setOf(t, Config{}, rule)
				life, end := context.WithCancel(t.Context())
				defer end()
				ofServer := signal
				ofServer.Server = "a"
				began := time.Now()
				var got []time.Duration
				s.OnFire(life, ofServer, func() { got = append(got, time.Since(began)) })
				time.Sleep(time.Minute)
				synctest.Wait()
				assert.Equal(t, want, got)
				end()
				synctest.Wait()
				_, err := s.Inject("fire signal/HasBeenReady server=a optional")
				require.NoError(t, err)
				assert.Equal(t, want, got, "after the end")
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := setOf(t, Config{}, "hold signal/HasBeenReady nth=2 optional", "fire signal/HasBeenReady")
		fired := 0
		s.OnFire(t.Context(), signal, func() { fired++ })
		_, err := s.Inject("fire signal/HasBeenReady")
		require.NoError(t, err)
		assert.Equal(t, 1, fired, "a signal fires once")
		_, err = s.At(t.Context(), func() Operation { return signal })
		assert.NoError(t, err, "and it counted as the operation")
		assert.Empty(t, s.Unfired())
	})
}

// TestRelease lets go what waits at a match, and nothing else.
func TestRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setOf(t, Config{}, "hold hook/a", "hold hook/*")
		var mu sync.Mutex
		went := map[string]bool{}
		arrive := func(name string) {
			go func() {
				_, err := s.At(t.Context(), func() Operation { return Operation{Point: HookPoint + name, Verb: "post-start"} })
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				went[name] = true
			}()
			synctest.Wait()
		}
		arrive("a")
		arrive("b")
		arrive("c")
		require.NoError(t, s.Release("hook/a")) // it waits for the other rule now
		synctest.Wait()
		require.NoError(t, s.Release("hook/a"))
		require.NoError(t, s.Release("hook/b"))
		synctest.Wait()
		assert.Equal(t, map[string]bool{"a": true, "b": true}, went)
		assert.EqualError(t, s.Release("hook/d"), "nothing is held at hook/d; held are: hook/c; did you mean hook/c?")
		assert.ErrorContains(t, s.Release("hook"), "unknown point")
		s.Close()
		synctest.Wait()
		assert.EqualError(t, s.Release("hook/c"), "nothing is held at hook/c; held are: none")
	})
}
