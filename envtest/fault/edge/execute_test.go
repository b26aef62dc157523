package edge

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

func TestDeliver(t *testing.T) {
	event := func() fault.Operation {
		return fault.Operation{Point: "store/watch-event", Verb: "put", Resource: "configmaps"}
	}
	for rule, want := range map[string]Delivery{
		"drop store/watch-event":                           {},
		"duplicate store/watch-event":                      {Times: 2},
		"cancel store/watch-event":                         {Last: true},
		"crash store/watch-event":                          {Last: true, Err: fault.ErrCrashed},
		"compact store/watch-event":                        {Times: 1},
		"drop store/watch-event resource=pods optional":    {Times: 1},
		"drop store/watch-event server=b optional":         {Times: 1},
		"duplicate store/watch-event resource=configmaps":  {Times: 2},
		"cancel store/watch-event nth=2 optional":          {Times: 1},
		"drop store/put optional":                          {Times: 1},
		"duplicate store/watch-event verb=delete optional": {Times: 1},
	} {
		t.Run(rule, func(t *testing.T) {
			i, _ := injectorOf(t, rule)
			got := Deliver(t.Context(), i, event)
			assert.ErrorIs(t, got.Err, want.Err)
			got.Err, want.Err = nil, nil
			assert.Equal(t, want, got)
		})
	}
}

// TestNotice notifies of a wait, and not of the rule that decides the outcome.
func TestNotice(t *testing.T) {
	hold, fail := "delay store/put by=1ns", "fail store/put with=timeout"
	i, _ := injectorOf(t, hold, fail)
	var noticed []string
	ctx := fault.WithNotice(t.Context(), func(phase trace.Phase, rule fault.Rule) {
		noticed = append(noticed, string(phase)+" "+rule.String())
	})
	_, err := Call(ctx, i, func() fault.Operation { return fault.Operation{Point: "store/put"} },
		func(context.Context) (string, error) { return "", nil })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, []string{"held " + hold, "released " + hold}, noticed)
}

// TestCallCostsNothing where there are no rules: nothing escapes to the heap.
func TestCallCostsNothing(t *testing.T) {
	for what, i := range map[string]*Injector{"nil": nil,
		"empty": NewInjector(fault.New(fault.Config{}), "a", Effects{})} {
		name := "a"
		assert.Equal(t, float64(0), testing.AllocsPerRun(100, func() {
			_, _ = Call(t.Context(), i, func() fault.Operation {
				return fault.Operation{Point: "store/put", Name: name}
			},
				func(context.Context) (int, error) { return len(name), nil })
		}), "a %s injector", what)
	}
}
