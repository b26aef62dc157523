package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/trace"
)

// setOf makes a Set of rules.
func setOf(t *testing.T, config Config, rules ...string) *Set {
	t.Helper()
	s := New(config)
	t.Cleanup(s.Close)
	for _, text := range rules {
		rule, err := Parse(text, config.Names)
		require.NoError(t, err)
		_, err = s.Add(rule)
		require.NoError(t, err)
	}
	return s
}

// at is an injector that asks.
func at(t *testing.T, s *Set, op Operation) Decision {
	t.Helper()
	d, err := s.At(t.Context(), func() Operation { return op })
	require.NoError(t, err)
	return d
}

// named is a put of an object.
func named(name string) Operation {
	return Operation{Point: "store/put", Resource: "configmaps", Namespace: "default", Name: name}
}

// TestAbout tells which rules may hold up the events of pods on apiserver-0.
func TestAbout(t *testing.T) {
	points := []string{"cache/pods", "http/watch", "store/watch-event"}
	for rule, want := range map[string]bool{
		"hold cache/pods":                             true,
		"hold cache/* server=apiserver-0":             true,
		"hold cache/pods server=apiserver-1":          false,
		"hold cache/nodes":                            false,
		"delay http/watch by=1s resource=pods":        true,
		"delay http/watch by=1s resource=nodes":       false,
		"delay http/watch by=1s caller=somebody":      true,
		"hold store/watch-event name=a":               true,
		"fail store/put resource=pods with=no-leader": false,
		"partition store server=apiserver-0":          true,
		"partition store server=apiserver-1":          false,
	} {
		assert.Equal(t, want, setOf(t, Config{}, rule).About("apiserver-0", "pods", points...), rule)
	}
	s := setOf(t, Config{}, "hold cache/pods")
	s.Rules()[0].Gate().Open()
	assert.False(t, s.About("apiserver-0", "pods", points...), "an open gate")
	assert.False(t, New(Config{}).About("apiserver-0", "pods", points...), "no rule")
}

func TestAtWithoutRules(t *testing.T) {
	unasked := func() Operation { t.Error("an operation is described that no rule asks for"); return Operation{} }
	for what, s := range map[string]*Set{"nil": nil, "empty": New(Config{})} {
		d, err := s.At(t.Context(), unasked)
		assert.True(t, err == nil && d == Decision{} && d.Err() == nil, what)
		assert.False(t, s.Active(), what)
	}
	s := setOf(t, Config{}, "crash store/put")
	assert.True(t, s.Active())
	s.Rules()[0].Remove()
	assert.False(t, s.Active())
	s.Schedule(&turns{})
	assert.True(t, s.Active())
	s.Close()
	assert.False(t, s.Active())
	_, err := s.At(t.Context(), unasked)
	assert.NoError(t, err)
}

func TestDecision(t *testing.T) {
	s := setOf(t, Config{}, "fail store/put resource=configmaps with=leader-changed times=2", "crash store/put name=a",
		"drop store/*")
	for i, want := range []ActionKind{Fail, Fail, Crash, Crash} {
		d := at(t, s, put)
		assert.Equal(t, want, d.Kind, "operation %d", i)
		assert.Equal(t, i+1, d.op.Occurrence)
		assert.Equal(t, want, d.entry.rule.Kind)
	}
	assert.Equal(t, Drop, at(t, s, Operation{Point: "store/list"}).Kind)
	assert.Equal(t, Pass, at(t, s, Operation{Point: "http/list"}).Kind)
	again := put
	again.Occurrence = 7
	assert.Equal(t, 5, at(t, s, again).op.Occurrence, "the injector counts, and not the set")
	fired := []int{}
	for _, e := range s.Rules() {
		fired = append(fired, e.Fired())
	}
	assert.Equal(t, []int{2, 3, 1}, fired)
}

// A rule fires only where its action means something, however wide its match.
func TestWideRulesFireWhereTheyMeanSomething(t *testing.T) {
	s := setOf(t, Config{}, "fail store/* with=compacted", "fail informer/* with=500",
		"fail http/* phase=after with=503")
	for op, want := range map[Operation]ActionKind{
		{Point: "store/list"}:                     Fail,
		{Point: "store/put"}:                      Pass, // a write can't ask for an old revision
		{Point: "store/watch-event", Verb: "put"}: Pass,
		{Point: "informer/pods", Verb: "list"}:    Fail,
		{Point: "informer/pods", Verb: "sync"}:    Pass,
		{Point: "http/get"}:                       Pass,
		{Point: "http/get", Phase: After}:         Fail,
		{Point: "http/watch", Phase: Stream}:      Pass,
	} {
		assert.Equal(t, want, at(t, s, op).Kind, op)
	}
}

func TestAtRefusesUnknownPoints(t *testing.T) {
	s := setOf(t, Config{}, "drop store/*")
	for _, op := range []Operation{{}, {Point: "store"}, {Point: "store/"}, {Point: "store/putt"},
		{Point: "informer/pods", Verb: "lists"}, {Point: "store/put", Phase: After}} {
		_, err := s.At(t.Context(), func() Operation { return op })
		assert.ErrorContains(t, err, "not in the catalogue", op)
	}
}

func TestCounts(t *testing.T) {
	for text, want := range map[string]string{
		"drop store/put nth=2":                 "-x--------",
		"drop store/put nth=2..4":              "-xxx------",
		"drop store/put nth=8..":               "-------xxx",
		"drop store/put every=3":               "--x--x--x-",
		"drop store/put nth=4.. every=3":       "-----x--x-",
		"drop store/put times=2":               "xx--------",
		"drop store/put every=3 times=2":       "--x--x----",
		"drop store/put name=even nth=2":       "---x------",
		"drop store/put probability=1 times=3": "xxx-------",
	} {
		s := setOf(t, Config{}, text)
		got := ""
		for i := range 10 {
			if at(t, s, named([]string{"odd", "even"}[i%2])).Kind == Drop {
				got += "x"
			} else {
				got += "-"
			}
		}
		assert.Equal(t, want, got, text)
	}
}

// outcomes are which of a hundred operations of each object a rule takes, while
// background operations come in between as they like.
func outcomes(background func() bool, lucky func(op Operation) bool) map[string]string {
	got := map[string]string{}
	ask := func(name string) {
		r := "-"
		if lucky(named(name)) {
			r = "x"
		}
		got[name] += r
	}
	for range 100 {
		for _, name := range []string{"a", "b"} {
			for background() {
				ask("background")
			}
			ask(name)
		}
	}
	delete(got, "background")
	return got
}

// A decision by probability depends on nothing but seed, rule, identity and
// occurrence. A shared stream of random numbers, as a mutation, does not pass.
func TestProbability(t *testing.T) {
	never := func() bool { return false }
	sometimes := func() bool { return rand.IntN(3) == 0 }
	bySet := func(seed uint64, rule string) func(Operation) bool {
		s := setOf(t, Config{Seed: seed}, rule)
		return func(op Operation) bool { return at(t, s, op).Kind == Drop }
	}
	const rule = "drop store/put probability=0.3"
	want := outcomes(never, bySet(1, rule))
	assert.Equal(t, want, outcomes(sometimes, bySet(1, rule)), "background operations shift decisions")
	assert.Equal(t, want, outcomes(sometimes, bySet(1, rule+" optional")), "being optional shifts decisions")
	assert.NotEqual(t, want, outcomes(never, bySet(2, rule)), "the seed does not matter")
	assert.NotEqual(t, want, outcomes(never, bySet(1, rule+" times=1000")), "the rule does not matter")
	assert.NotEqual(t, want["a"], want["b"], "the identity does not matter")

	stream := func() func(Operation) bool {
		r := rand.New(rand.NewPCG(1, 1))
		return func(Operation) bool { return r.Float64() < 0.3 }
	}
	assert.NotEqual(t, outcomes(never, stream()), outcomes(sometimes, stream()),
		"this test can't tell a stream from a hash")
}

func TestProbabilityIsOne(t *testing.T) {
	for _, p := range []float64{0.01, 0.3, 0.9, 1} {
		s := New(Config{Seed: 7})
		entries, err := s.Add(Rule{Action: Action{Kind: Drop}, Match: Match{Point: "store/put", Probability: p}})
		require.NoError(t, err)
		const n = 20_000
		for range n {
			at(t, s, put)
		}
		assert.InDelta(t, p*n, entries[0].Fired(), n/100, "probability %v", p)
	}
}

func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setOf(t, Config{}, "drop store/put after=5s for=30s", "crash store/put until=2s",
			"cancel store/put after=1h")
		got := map[time.Duration]ActionKind{}
		start := time.Now()
		for _, d := range []time.Duration{0, 2, 5, 34, 35, 3599, 3600} {
			time.Sleep(d*time.Second - time.Since(start))
			got[d] = at(t, s, put).Kind
		}
		assert.Equal(t, map[time.Duration]ActionKind{0: Crash, 2: Pass, 5: Drop, 34: Drop, 35: Pass, 3599: Pass,
			3600: Cancel}, got)
	})
}

// Delays add up, come before what becomes of the operation, and end with ctx,
// with their rule, and with the set.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setOf(t, Config{}, "delay store/put by=3s", "delay store/put by=1m", "fail store/put with=unavailable",
			"delay store/put by=1h")
		start := time.Now()
		assert.Equal(t, Fail, at(t, s, put).Kind)
		assert.Equal(t, 63*time.Second, time.Since(start))
		assert.Zero(t, s.Rules()[3].Fired(), "a rule behind the outcome is looked at")

		cause := errors.New("the test is over")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		_, err := s.At(ctx, func() Operation { return put })
		assert.ErrorIs(t, err, cause)
		assert.ErrorContains(t, err,
			`store/put configmaps default/a by system:apiserver on alpha was waiting because of the rule "delay store/put by=3s"`)

		start = time.Now()
		time.AfterFunc(time.Second, s.Rules()[0].Remove)
		time.AfterFunc(2*time.Second, s.Close)
		assert.Equal(t, Pass, at(t, s, put).Kind, "the set was closed while it waited")
		assert.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestAddIsAllOrNothing(t *testing.T) {
	s := setOf(t, Config{Names: known})
	good, bad := Rule{Action: Action{Kind: Drop}, Match: Match{Point: "store/put"}}, Rule{Action: Action{Kind: Drop},
		Match: Match{Point: "cache/secrets"}}
	_, err := s.Add(good, bad)
	assert.ErrorContains(t, err, `unknown point "cache/secrets"`)
	assert.Empty(t, s.Rules())
	s.Close()
	_, err = s.Add(good)
	assert.ErrorIs(t, err, ErrClosed)
	_, err = s.Gate("store/put")
	assert.ErrorIs(t, err, ErrClosed)
}

func TestUnfired(t *testing.T) {
	s := setOf(t, Config{}, "drop store/put name=a", "drop store/put name=b", "drop store/put name=c optional",
		"drop store/put name=d", "drop store/put name=e")
	at(t, s, named("a"))
	at(t, s, named("d"))
	s.Rules()[4].Remove()
	s.Rules()[3].Remove()
	unfired := func() []string {
		var rules []string
		for _, r := range s.Unfired() {
			rules = append(rules, r.Name)
		}
		return rules
	}
	assert.Equal(t, []string{"e", "b"}, unfired())
	s.Close()
	s.Close()
	assert.ElementsMatch(t, []string{"e", "b"}, unfired(), "after Close")
}

func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := trace.NewRecorder("alpha", 0)
		s := setOf(t, Config{Trace: recorder}, "delay http/update phase=after by=3s",
			"fail http/update phase=after nth=2 with=503", "hold http/update")
		op := Operation{Point: "http/update", Phase: After, Server: "alpha", Resource: "pods", Namespace: "ns",
			Name: "n", Key: "/k", Caller: "me"}
		at(t, s, op)
		at(t, s, op)
		at(t, s, Operation{Point: "http/get"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		op.Phase = ""
		_, err := s.At(ctx, func() Operation { return op })
		assert.ErrorIs(t, err, context.DeadlineExceeded)

		fault := func(phase trace.Phase, action, rest string, n int) trace.Fault {
			return trace.Fault{
				Phase: phase, Action: action, Rule: action + " http/update" + rest, Point: "http/update",
				OperationPhase: "after", Server: "alpha",
				Resource: "pods", Namespace: "ns", Name: "n", Key: "/k", Caller: "me", Occurrence: n,
			}
		}
		held, released := fault(trace.Held, "hold", "", 1), fault(trace.Released, "hold", "", 1)
		held.OperationPhase, released.OperationPhase = "", ""
		released.Err = err
		var got []trace.Event
		for _, r := range recorder.Records() {
			got = append(got, r.Event)
		}
		assert.Equal(t, []trace.Event{
			fault(trace.Held, "delay", " phase=after by=3s", 1),
			fault(trace.Released, "delay", " phase=after by=3s", 1),
			fault(trace.Held, "delay", " phase=after by=3s", 2),
			fault(trace.Released, "delay", " phase=after by=3s", 2),
			fault(trace.Applied, "fail", " phase=after nth=2 with=503", 2), held, released,
		}, got)
	})
}

// Rules come and go while many operations ask; none is left waiting, and none is
// answered by a rule about another.
func TestConcurrency(t *testing.T) {
	s := setOf(t, Config{Trace: trace.NewRecorder("alpha", 0)}, "fail store/put probability=0.5 with=no-leader")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 200 {
				d, err := s.At(t.Context(), func() Operation { return named(fmt.Sprint(i)) })
				assert.False(t, err != nil || d.Kind == Fail && d.op.Name != fmt.Sprint(i), "operation of %d: %v, %v",
					i, d.op, err)
			}
		})
		all.Go(func() {
			for range 100 {
				gate, err := s.Gate(fmt.Sprintf("store/put name=%d", i))
				if err != nil {
					t.Error(err)
					return
				}
				for _, op := range gate.Waiting() {
					gate.ReleaseOnly(op)
				}
				gate.Release(1)
				s.Unfired()
				gate.Remove()
			}
		})
	}
	all.Wait()
	assert.Len(t, s.Rules(), 1)
}

// TestDelayOfQueue counts the delay of something that has been in a queue from
// its arrival, so that a stream lags behind and does not run dry.
func TestDelayOfQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setOf(t, Config{}, "delay cache/pods by=3s")
		began := time.Now()
		for range 2 {
			_, err := s.At(t.Context(), func() Operation {
				return Operation{Point: "cache/pods", Verb: "event",
					Arrived: began}
			})
			require.NoError(t, err)
			assert.Equal(t, 3*time.Second, time.Since(began))
		}
	})
}

// TestAddNames tells a set later which names there are.
func TestAddNames(t *testing.T) {
	s := setOf(t, Config{}, "hold hook/start-kube-aggregator-informer", "hold cache/widgets.example.com")
	require.NoError(t, s.AddNames(Names{"resource": {"pods", "deployments.apps"}}))
	err := s.AddNames(Names{"hook": {"start-kube-aggregator-informers"}})
	require.ErrorContains(t, err, "start-kube-aggregator-informers")
	for _, refused := range []string{"hold cache/podz", "fail store/put resource=deployment.apps with=timeout"} {
		_, err := s.Add(parsed(t, refused))
		assert.ErrorContains(t, err, "did you mean", refused)
	}
	_, err = s.Add(parsed(t, "hold http/update resource=deployments.apps/scale optional"),
		parsed(t, "hold http/update resource=*/status optional"))
	require.NoError(t, err)
	_, err = s.Add(parsed(t, "fail store/put resource=gadgets.example.com with=timeout"))
	assert.NoError(t, err)
}

func parsed(t *testing.T, text string) Rule {
	t.Helper()
	rule, err := Parse(text, nil)
	require.NoError(t, err)
	return rule
}
