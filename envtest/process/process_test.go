package process

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// join joins for as long as the test runs; a crash is an error of the test.
func join(t *testing.T, name string, flags Flags) *Member {
	t.Helper()
	m, err := Join(name, flags, io.Discard, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Leave)
	return m
}

func gateIs(t *testing.T, when string, enabled, set bool) {
	t.Helper()
	if got := utilfeature.DefaultFeatureGate.Enabled(features.WatchList); got != enabled {
		t.Errorf("%s the feature gate is %t", when, got)
	}
	if got := utilfeature.DefaultMutableFeatureGate.ExplicitlySet(features.WatchList); got != set {
		t.Errorf("%s the feature gate has been set: %t", when, got)
	}
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
	if owned != "taken" {
		t.Errorf("what the chain owns is %s", owned)
	}
	for want, other := range map[string]Flags{
		"--allow-privileged=true":                 {AllowPrivileged: true},
		"--max-connection-bytes-per-sec=7":        {BytesPerSecond: 7},
		`feature gates "AllAlpha=true,Other=..."`: {Gates: map[featuregate.Feature]bool{"AllAlpha": true}},
	} {
		want, _, _ = strings.Cut(want, ",")
		if _, err := Join("other", other, io.Discard, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a member with %s: %v", want, err)
		}
	}
	second := join(t, "second", Flags{Verbosity: 3})
	first.Leave()
	gateIs(t, "before the last has left", !was, true)
	second.Leave()
	second.Leave()
	gateIs(t, "after the last has left", was, false)
	if owned != "strange" {
		t.Errorf("what the chain owned is %s", owned)
	}
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
	if _, err := Join("failing", Flags{Gates: locked}, io.Discard, nil); err == nil {
		t.Fatalf("joined with feature gates that are locked to their defaults: %v", locked)
	}
	compare(t, before, state())
	join(t, "next", Flags{})
}

// TestGoroutines finds a member's goroutines, and no others.
func TestGoroutines(t *testing.T) {
	m := join(t, "labelled", Flags{})
	child := make(chan *Member)
	m.Go(func() { go func() { child <- current() }() })
	if found := <-child; found != m {
		t.Errorf("a goroutine's child belongs to %v", found)
	}
	m.Do(func() {
		if found := current(); found != m {
			t.Errorf("the goroutine in Do belongs to %v", found)
		}
	})
	if found := current(); found != nil {
		t.Errorf("the test's own goroutine belongs to %v", found)
	}
	started, stop := make(chan struct{}), make(chan struct{})
	m.Go(func() {
		close(started)
		<-stop
	})
	<-started
	if left := m.goroutines(); len(left) != 1 || !strings.Contains(left[0], "TestGoroutines") {
		t.Errorf("the goroutines of the member: %v", left)
	}
	soon, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if err := m.Wait(soon); err == nil || !strings.Contains(err.Error(), "goroutines of labelled have not ended") || !strings.Contains(err.Error(), "TestGoroutines") {
		t.Errorf("Wait for a goroutine that does not end: %v", err)
	}
	close(stop)
	if err := m.Wait(t.Context()); err != nil {
		t.Error(err)
	}
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
