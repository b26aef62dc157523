package virtualtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/virtualtime"
)

func put(name, caller string) fault.Operation {
	return fault.Operation{Point: "store/put", Resource: "configmaps", Namespace: "default", Name: name, Caller: caller}
}

// turnsOf lets five clients write four objects each under an order, and returns
// their turns. A client starts its next write at once.
func turnsOf(t *testing.T, order virtualtime.Order, rules ...string) (turns []string, err error) {
	synctest.Test(t, func(t *testing.T) {
		set := fault.New(fault.Config{})
		plan, planErr := fault.ParsePlan("", strings.Join(rules, "\n"), nil)
		require.NoError(t, planErr)
		_, addErr := set.Add(plan...)
		require.NoError(t, addErr)
		scheduler := virtualtime.NewScheduler(order, func(turn virtualtime.Turn) {
			turns = append(turns, fmt.Sprintf("%d %s/%s after %d", turn.Number, turn.Operation.Caller, turn.Operation.Name, turn.Cause))
		})
		set.Schedule(scheduler)
		clients := make(chan struct{})
		for _, client := range []string{"a", "b", "c", "d", "e"} {
			go func() {
				defer func() { clients <- struct{}{} }()
				for i := range 4 {
					_, err := set.At(t.Context(), func() fault.Operation { return put(fmt.Sprint(i), client) })
					assert.NoError(t, err)
				}
			}()
		}
		for range 5 {
			<-clients
		}
		err = scheduler.Err()
		scheduler.Stop()
		set.Close()
	})
	return turns, err
}

// TestSeed shows that a seed always gives one order, another seed another one,
// whatever the order in which goroutines arrive.
func TestSeed(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(20) {
		first, err := turnsOf(t, virtualtime.Order{Seed: seed})
		require.NoError(t, err)
		require.Len(t, first, 20)
		for range 10 {
			again, err := turnsOf(t, virtualtime.Order{Seed: seed})
			require.NoError(t, err)
			require.Equal(t, first, again)
		}
		orders[strings.Join(first, "\n")] = true
	}
	assert.Len(t, orders, 20)
}

func steps(t *testing.T, matches ...string) []virtualtime.Step {
	t.Helper()
	var steps []virtualtime.Step
	for _, m := range matches {
		match, err := fault.ParseMatch(m, nil)
		require.NoError(t, err)
		steps = append(steps, virtualtime.Step{Match: match})
	}
	return steps
}

// TestSteps shows that steps happen in their order under every seed.
func TestSteps(t *testing.T) {
	script := steps(t, "store/put name=3 caller=e", "store/put name=0 caller=a", "store/put name=0 caller=b")
	for seed := range uint64(20) {
		turns, err := turnsOf(t, virtualtime.Order{Seed: seed, Steps: script})
		require.NoError(t, err)
		var places []int
		for _, of := range []string{" e/3 ", " a/0 ", " b/0 "} {
			places = append(places, slices.IndexFunc(turns, func(turn string) bool { return strings.Contains(turn, of) }))
		}
		assert.True(t, slices.IsSorted(places), "seed %d: %v", seed, turns)
	}
}

// TestStepsAreNeeded shows that some seed breaks the order that TestSteps sees.
func TestStepsAreNeeded(t *testing.T) {
	broken := false
	for seed := range uint64(20) {
		turns, err := turnsOf(t, virtualtime.Order{Seed: seed})
		require.NoError(t, err)
		last := slices.IndexFunc(turns, func(turn string) bool { return strings.Contains(turn, " e/3 ") })
		first := slices.IndexFunc(turns, func(turn string) bool { return strings.Contains(turn, " a/0 ") })
		broken = broken || first < last
	}
	assert.True(t, broken)
}

// TestMissingStep shows that steps are dropped when one does not come, and that
// the error names it and what waited for it.
func TestMissingStep(t *testing.T) {
	turns, err := turnsOf(t, virtualtime.Order{Steps: steps(t, "store/put name=9", "store/put caller=a"), Patience: time.Hour})
	assert.Len(t, turns, 20)
	assert.EqualError(t, err, "step 1 of 2 did not come: store/put name=9 within 1h0m0s; waiting for it: store/put configmaps default/0 by a")
}

// TestCause records what made an operation arrive: a turn, or time.
func TestCause(t *testing.T) {
	var turns []virtualtime.Turn
	synctest.Test(t, func(t *testing.T) {
		set := fault.New(fault.Config{})
		scheduler := virtualtime.NewScheduler(virtualtime.Order{}, func(turn virtualtime.Turn) { turns = append(turns, turn) })
		set.Schedule(scheduler)
		for i := range 3 {
			if i == 2 {
				time.Sleep(time.Second)
			}
			_, err := set.At(t.Context(), func() fault.Operation { return put("x", "a") })
			require.NoError(t, err)
		}
		scheduler.Stop()
		set.Close()
	})
	var causes []int
	for _, turn := range turns {
		causes = append(causes, turn.Cause)
	}
	assert.Equal(t, []int{0, 1, 0}, causes)
}

// TestIdle shows that Idle returns when no operation may proceed, and not before.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := fault.New(fault.Config{})
		scheduler := virtualtime.NewScheduler(virtualtime.Order{Steps: steps(t, "store/put name=last", "store/put name=held")}, nil)
		set.Schedule(scheduler)
		done := 0
		for _, name := range []string{"held", "x", "y", "z"} {
			go func() {
				_, _ = set.At(t.Context(), func() fault.Operation { return put(name, "a") })
				done++
			}()
		}
		require.NoError(t, scheduler.Idle(t.Context()))
		assert.Equal(t, 3, done)
		assert.Len(t, scheduler.Waiting(), 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		scheduler.Stop()
		assert.Error(t, scheduler.Idle(ctx))
		set.Close()
	})
}
