package virtualtime

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

func TestLatency(t *testing.T) {
	put := fault.Operation{Point: "store/put", Resource: "pods", Name: "a"}
	usual := func(seed uint64, op fault.Operation) time.Duration {
		took, _ := NewLatency(seed).Of(op)
		return took
	}
	took := usual(1, put)
	assert.GreaterOrEqual(t, took, MinLatency)
	assert.Less(t, took, MaxLatency)
	again := put
	again.Occurrence = 7
	assert.Equal(t, took, usual(1, again), "it does not depend on which came first")
	assert.NotEqual(t, took, usual(2, put))
	for _, nothing := range []fault.Operation{
		{Point: "store/watch-event"}, {Point: "cache/pods"}, {Point: "hook/x"}, {Point: "http/get", Phase: fault.After},
	} {
		assert.Zero(t, usual(1, nothing), nothing)
	}
}

// A caller that tries again and again without a pause moves virtual time, with
// rules, without, and with a scheduler; unless nothing takes time.
func TestLatencyMovesTime(t *testing.T) {
	const tries = 1000
	for name, test := range map[string]struct {
		latency bool
		prepare func(*testing.T, *fault.Set)
	}{
		"no rules": {true, func(*testing.T, *fault.Set) {}},
		"rules": {true, func(t *testing.T, s *fault.Set) {
			_, err := s.Inject("fail store/put with=unavailable")
			require.NoError(t, err)
		}},
		"scheduler": {true, func(_ *testing.T, s *fault.Set) { s.Schedule(patient{}) }},
		"ended":     {true, func(*testing.T, *fault.Set) {}},
		"informer": {true, func(t *testing.T, s *fault.Set) { // it takes no time, but its failure does
			_, err := s.Inject("fail informer/pods with=410")
			require.NoError(t, err)
		}},
		"off": {false, func(*testing.T, *fault.Set) {}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var config fault.Config
				if test.latency {
					config.Latency = NewLatency(0)
				}
				set := fault.New(config)
				test.prepare(t, set)
				injector := edge.NewInjector(set, "apiserver-0", edge.Effects{})
				put := func() fault.Operation { return fault.Operation{Point: "store/put", Resource: "pods"} }
				switch name {
				case "ended":
					injector.End()
				case "informer":
					put = func() fault.Operation { return fault.Operation{Point: "informer/pods", Verb: "list"} }
				}
				begun := time.Now()
				for range tries {
					_, _ = edge.Call(t.Context(), injector, put, func(context.Context) (int, error) { return 0, nil })
				}
				if test.latency {
					assert.GreaterOrEqual(t, time.Since(begun), tries*MinLatency)
				} else {
					assert.Zero(t, time.Since(begun))
				}
			})
		})
	}
}

// Discovery takes no time, as a client that asks may hold a mutex, until one asks again and
// again.
func TestLatencyOfDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := fault.New(fault.Config{Latency: NewLatency(0)})
		set.Schedule(patient{})
		ask := func(op fault.Operation) time.Duration {
			begun := time.Now()
			_, err := set.At(t.Context(), func() fault.Operation { return op })
			require.NoError(t, err)
			return time.Since(begun)
		}
		discovery := fault.Operation{Point: "http/get", Key: "/apis/apps/v1", Caller: "jane"}
		for range patientFailures - 1 {
			assert.Zero(t, ask(discovery))
		}
		assert.GreaterOrEqual(t, ask(discovery), MinLatency)
		time.Sleep(2 * failurePause)
		assert.Zero(t, ask(discovery))
		for _, other := range []fault.Operation{
			{Point: "http/get", Key: "/openapi/v3"}, {Point: "http/get", Resource: "pods", Key: "/api/v1/pods/a"},
			{Point: "http/create", Key: "/apis"},
		} {
			assert.GreaterOrEqual(t, ask(other), MinLatency, other)
		}
	})
}

// patient lets each operation go on when it has taken its time.
type patient struct{}

func (patient) Arrive(_ fault.Operation, latency time.Duration, release func()) {
	time.AfterFunc(latency, release)
}

func (patient) Leave(fault.Operation) {}

func (patient) Reseed(uint64) {}

// What fails again and again takes longer, until it has not been tried for a while
// or has worked.
func TestLatencyOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		injector := edge.NewInjector(fault.New(fault.Config{Latency: NewLatency(0)}), "apiserver-0", edge.Effects{})
		put := func() fault.Operation { return fault.Operation{Point: "store/put", Resource: "pods"} }
		took := func(err error) time.Duration {
			begun := time.Now()
			_, _ = edge.Call(t.Context(), injector, put, func(context.Context) (int, error) { return 0, err })
			return time.Since(begun)
		}
		usual := took(nil)
		for range patientFailures {
			assert.Equal(t, usual, took(assert.AnError))
		}
		assert.Equal(t, 2*usual, took(assert.AnError))
		for range 20 * patientFailures {
			_ = took(assert.AnError)
		}
		assert.Equal(t, 128*usual, took(nil))
		assert.Equal(t, usual, took(nil), "it has worked")
		for range 2 * patientFailures {
			_ = took(assert.AnError)
		}
		time.Sleep(2 * failurePause)
		assert.Equal(t, usual, took(nil), "it has not been tried for a while")
	})
}

// A request whose answer fails is one that fails.
func TestLatencyOfFailingAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := fault.New(fault.Config{Latency: NewLatency(0)})
		injector := edge.NewInjector(set, "apiserver-0", edge.Effects{})
		_, err := set.Inject("fail http/get phase=after with=410")
		require.NoError(t, err)
		begun := time.Now()
		for range 20 * patientFailures {
			for _, phase := range []fault.Phase{fault.Before, fault.After} {
				edge.Execute(t.Context(), injector,
					func() fault.Operation { return fault.Operation{Point: "http/get", Phase: phase} },
					edge.Ways[int]{Proceed: func() int { return 0 }, Fail: func(error) int { return 0 }})
			}
		}
		assert.Greater(t, time.Since(begun), 20*patientFailures*10*MinLatency)
	})
}
