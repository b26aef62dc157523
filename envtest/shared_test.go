package envtest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/virtualtime"
	"snowglobe.test/internal/serverlog"
)

// sharedTest is a test on a control plane that others had, and will have.
type sharedTest func(t testing.TB, cp *envtest.ControlPlane)

// shared is a control plane in real time that tests have in turn. Between two of them it is
// reset; after one that fails, the next gets another.
type shared struct {
	start func() *envtest.ControlPlane
	cp    *envtest.ControlPlane // nil until there is one that can be used
}

func (s *shared) run(t *testing.T, test sharedTest) {
	if s.cp == nil {
		s.cp = s.start()
	}
	cp := s.cp
	s.cp = nil
	t.Cleanup(func() { // after all that the test cleans up
		if cleared(t, cp) {
			s.cp = cp
		}
	})
	test(t, cp)
}

// cleared takes from a control plane what a test has left, and reports whether the next one
// can have it.
func cleared(t testing.TB, cp *envtest.ControlPlane) bool {
	if t.Failed() {
		return false
	}
	for _, rule := range cp.Faults().Rules() {
		rule.Remove()
	}
	return assert.NoError(t, cp.Reset(context.WithoutCancel(t.Context())))
}

// simulated is shared in virtual time. Subtests can't be in a bubble, so each sends what it
// does to the one in which the control plane is.
type simulated struct {
	opts  []envtest.Option
	turns chan turn // nil if there is no control plane that can be used
	ended chan error
}

// turn is what one test does, in the bubble. It reports whether another can follow.
type turn func(context.Context, *envtest.ControlPlane) (goOn bool)

func (s *simulated) run(t *testing.T, test sharedTest) {
	if s.turns == nil {
		s.start()
	}
	goesOn := make(chan bool, 1)
	mine := func(ctx context.Context, cp *envtest.ControlPlane) (goOn bool) {
		goOn = runInBubble(ctx, t, cp, test)
		goesOn <- goOn
		return goOn
	}
	select {
	case s.turns <- mine:
	case err := <-s.ended: // it has not started
		s.turns = nil
		require.NoError(t, err)
	}
	select {
	case goOn := <-goesOn:
		if !goOn {
			s.stop(t)
		}
	case err := <-s.ended: // the bubble is stuck
		s.turns = nil
		require.NoError(t, err)
	}
}

func (s *simulated) start() {
	turns, ended := make(chan turn), make(chan error, 1)
	s.turns, s.ended = turns, ended
	go func() {
		ended <- envtest.SimulateContext(func(ctx context.Context, cp *envtest.ControlPlane) error {
			for goOn := true; goOn; {
				var next turn
				virtualtime.Paused(func() { next = <-turns })
				goOn = next != nil && next(ctx, cp)
			}
			return cp.Err()
		}, s.opts...)
	}()
}

// stop stops the control plane, if there is one.
func (s *simulated) stop(t *testing.T) {
	if s.turns != nil {
		close(s.turns)
		s.turns = nil
		assert.NoError(t, <-s.ended)
	}
}

// bubbleT is the T of a test while it is in the bubble of others.
type bubbleT struct {
	testing.TB
	ctx      context.Context
	cleanups []func()
}

func (t *bubbleT) Context() context.Context { return t.ctx }

func (t *bubbleT) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// runInBubble runs the test on a goroutine of its own, which FailNow ends.
func runInBubble(ctx context.Context, outer testing.TB, cp *envtest.ControlPlane, test sharedTest) (goOn bool) {
	ctx, cancel := context.WithCancel(ctx)
	t := &bubbleT{TB: outer, ctx: ctx}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		test(t, cp)
	}()
	<-finished
	cancel()
	for _, clean := range slices.Backward(t.cleanups) {
		clean()
	}
	if !cleared(t, cp) {
		t.Logf("log of the API server:\n%s", serverlog.Problems(cp.Log()))
		return false
	}
	return true
}
