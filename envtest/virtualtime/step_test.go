package virtualtime_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/virtualtime"
)

// TestParseStep reads steps, and writes them as they were.
func TestParseStep(t *testing.T) {
	for text, occurrence := range map[string]int{
		"store/put resource=configmaps name=default/a":    0,
		"store/put resource=configmaps name=default/a #2": 2,
		`store/put caller="a #3"`:                         0,
		"store/put #10":                                   10,
	} {
		step, err := virtualtime.ParseStep(text)
		require.NoError(t, err, "%s", text)
		assert.Equal(t, occurrence, step.Occurrence, "%s", text)
		assert.Equal(t, text, step.String())
	}
	for text, want := range map[string]string{
		"":                 "after the action comes a point",
		"store/putt":       "did you mean store/put?",
		"store/put #0":     "a whole number above 0",
		"store/put #first": "a whole number above 0",
	} {
		_, err := virtualtime.ParseStep(text)
		assert.ErrorContains(t, err, want, "%s", text)
	}
}

// TestStoppedScheduler lets operations go as they come once it is stopped.
func TestStoppedScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := fault.New(fault.Config{})
		scheduler := virtualtime.NewScheduler(virtualtime.Order{Steps: steps(t, "store/put name=first")}, nil)
		set.Schedule(scheduler)
		assert.False(t, scheduler.Stopped())
		scheduler.Stop()
		assert.True(t, scheduler.Stopped())
		_, err := set.At(t.Context(), func() fault.Operation { return put("second", "a") })
		assert.NoError(t, err)
		set.Close()
	})
}
