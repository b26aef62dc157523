package process

import (
	"context"
	"errors"
	"io"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// join joins for as long as the test runs; a crash is an error of the test.
func join(t *testing.T, name string, flags Flags) *Member {
	t.Helper()
	m, err := Join(name, flags, io.Discard, func(err error) { t.Error(err) })
	require.NoError(t, err)
	t.Cleanup(m.Leave)
	return m
}

func gateIs(t *testing.T, when string, enabled, set bool) {
	t.Helper()
	assert.Equal(t, enabled, utilfeature.DefaultFeatureGate.Enabled(features.WatchList), "%s the feature gate", when)
	assert.Equal(t, set, utilfeature.DefaultMutableFeatureGate.ExplicitlySet(features.WatchList), "%s the feature gate has been set", when)
}

// TestJoin takes the process's state over and gives it back, and refuses a second
// member that wants it otherwise.
func TestJoin(t *testing.T) {
	was := utilfeature.DefaultFeatureGate.Enabled(features.WatchList)
	owned := "strange"
	flags := Flags{
		Gates: map[featuregate.Feature]bool{features.WatchList: !was},
		TakeOver: []func() func(){func() func() {
			before := owned
			owned = "taken"
			return func() { owned = before }
		}},
	}
	first := join(t, "first", flags)
	gateIs(t, "after the first has joined", !was, true)
	assert.Equal(t, "taken", owned, "what the chain owns")
	for want, other := range map[string]Flags{
		"--allow-privileged=true":                 {AllowPrivileged: true},
		"--max-connection-bytes-per-sec=7":        {BytesPerSecond: 7},
		`feature gates "AllAlpha=true,Other=..."`: {Gates: map[featuregate.Feature]bool{"AllAlpha": true}},
	} {
		want, _, _ = strings.Cut(want, ",")
		_, err := Join("other", other, io.Discard, nil)
		assert.ErrorContains(t, err, want)
	}
	second := join(t, "second", Flags{Verbosity: 3})
	first.Leave()
	gateIs(t, "before the last has left", !was, true)
	second.Leave()
	second.Leave()
	gateIs(t, "after the last has left", was, false)
	assert.Equal(t, "strange", owned, "what the chain owned")
}

// TestJoinFails takes over what it can, and gives it back.
func TestJoinFails(t *testing.T) {
	before := state()
	locked := map[featuregate.Feature]bool{}
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		if spec.LockToDefault {
			locked[name] = !spec.Default
		}
	}
	_, err := Join("failing", Flags{Gates: locked}, io.Discard, nil)
	require.Error(t, err, "joined with feature gates that are locked to their defaults: %v", locked)
	compare(t, before, state())
	join(t, "next", Flags{})
}

// TestGoroutines finds a member's goroutines, and no others.
func TestGoroutines(t *testing.T) {
	m := join(t, "labelled", Flags{})
	child := make(chan *Member)
	m.Go(func() { go func() { child <- current() }() })
	assert.Same(t, m, <-child, "a goroutine's child belongs")
	require.NoError(t, m.Wait(t.Context()), "wait for both to end")
	m.Do(func() {
		assert.Same(t, m, current(), "the goroutine in Do belongs")
	})
	assert.Nil(t, current(), "the test's own goroutine belongs")
	started, stop := make(chan struct{}), make(chan struct{})
	m.Go(func() {
		close(started)
		<-stop
	})
	<-started
	left := goroutinesOf(m.name)
	assert.False(t, len(left) != 1 || !strings.Contains(left[0], "TestGoroutines"), "the goroutines of the member: %v", left)
	soon, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	err := m.Wait(soon)
	assert.False(t, err == nil || !strings.Contains(err.Error(), "goroutines of labelled have not ended (1 in all):\n") || !strings.Contains(err.Error(), "TestGoroutines"), "Wait for a goroutine that does not end: %v", err)
	close(stop)
	assert.NoError(t, m.Wait(t.Context()))
}

// TestWaitReadsLabels waits for a goroutine that has added labels of its own: it is found by
// what its labels say, not by being the member's set.
func TestWaitReadsLabels(t *testing.T) {
	m := join(t, "labelling", Flags{})
	started, stop := make(chan struct{}), make(chan struct{})
	m.Go(func() {
		pprof.Do(m.ctx, pprof.Labels("of", "somebody"), func(context.Context) {
			close(started)
			<-stop
		})
	})
	<-started
	soon, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	assert.ErrorContains(t, m.Wait(soon), "goroutines of labelling have not ended (1 in all)")
	close(stop)
	assert.NoError(t, m.Wait(t.Context()))
}

// hang and hangToo are what goroutines of TestLeft hang in.
func hang(stop <-chan struct{})    { <-stop }
func hangToo(stop <-chan struct{}) { <-stop }

// TestLeft names every goroutine that is left by where it hangs, what it runs and who
// created it, those that are alike together and the rarest first.
func TestLeft(t *testing.T) {
	m := join(t, "leaving", Flags{})
	stop := make(chan struct{})
	var ended sync.WaitGroup
	m.Do(func() {
		for range 3 {
			ended.Go(func() { hang(stop) })
		}
		ended.Go(func() { hangToo(stop) })
	})
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := m.Wait(soon)
	require.Error(t, err, "all have ended")
	report := err.Error()
	for _, want := range []string{
		"goroutines of leaving have not ended (4 in all):\n     1 in process.hangToo (process_test.go:",
		"\n     3 in process.hang (process_test.go:",
		") [chan receive], of process.TestLeft.func1.1, created by sync.(*WaitGroup).Go\n",
		"\tsnowglobe.test/envtest/process.hang+0x", // a stack
	} {
		assert.Contains(t, report, want)
	}
	close(stop)
	ended.Wait()
}

// crashes collects what a member has crashed with.
type crashes struct {
	mu   sync.Mutex
	errs []error
}

func (c *crashes) add(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, err)
}

// err is nil if nothing has crashed.
func (c *crashes) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}
