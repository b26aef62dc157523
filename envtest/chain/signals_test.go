package chain

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/chain/upstream"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/trace"
)

// TestSignalsInOrder signals from one goroutine, as upstream does, beginning with each signal.
// One has fired before the chain serves, one comes after it has ended, and the only rule is
// about something else.
func TestSignalsInOrder(t *testing.T) {
	faults := fault.New(fault.Config{})
	rule, err := fault.Parse("hold http/get resource=pods", fault.Names{})
	require.NoError(t, err)
	_, err = faults.Add(rule)
	require.NoError(t, err)

	for first := range 3 {
		recorder := trace.NewRecorder("test", 0)
		injector := edge.NewInjector(faults, "apiserver-0", edge.Effects{})
		c := &Chain{cfg: Config{Trace: recorder}, injector: injector, ending: injector}
		var signals []upstream.LifecycleSignal
		config := genericapiserver.NewConfig(codecs())
		require.NoError(t, c.injectSignals(config))
		require.NoError(t, upstream.ReplaceSignals(config, func(s upstream.LifecycleSignal) upstream.LifecycleSignal {
			switch s.Name() {
			case upstream.NotAcceptingNewRequest, upstream.InFlightRequestsDrained, upstream.HTTPServerStoppedListening:
			// These need more of the chain than there is.
			default:
				signals = append(signals, s)
			}
			return s
		}))
		signals = append(signals[first:], signals[:first]...)
		last := len(signals) - 1

		signals[0].Signal()
		assert.Empty(t, recorder.Records(), "before the chain serves")
		c.followSignals()
		for _, s := range signals[:last] {
			s.Signal()
		}
		c.following.Store(false)
		signals[last].Signal()

		var want, got []trace.Event
		for _, s := range signals[:last] {
			want = append(want, trace.Signal{Name: s.Name()})
		}
		for _, r := range recorder.Records() {
			got = append(got, r.Event)
		}
		assert.Equal(t, want, got)
	}
}
