package envtest_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

const (
	tokenHook    = "start-legacy-token-tracking-controller"
	shutdownHook = "stop-kubernetes-service-controller"
	mux          = "MuxAndDiscoveryComplete"
)

func init() {
	pointTests["hook/<hook> post-start"] = pointTest{show: showPostStart, opts: []envtest.Option{envtest.WithFaults(
		"hold hook/"+crdHook+" verb=post-start", "drop hook/"+tokenHook+" verb=post-start",
	)}}
	pointTests["hook/<hook> pre-shutdown"] = pointTest{show: showPreShutdown, alone: true}
	pointTests["signal/<signal>"] = pointTest{show: showSignal, opts: []envtest.Option{envtest.WithFaults("hold signal/" + mux)}}
}

// gateOf returns the gate of a rule.
func gateOf(t testing.TB, cp *envtest.ControlPlane, match string) *fault.Gate {
	t.Helper()
	gate, err := cp.Faults().Gate(match)
	require.NoError(t, err)
	return gate
}

// awaitOne waits for an operation at a gate.
func awaitOne(t testing.TB, gate *fault.Gate) fault.Operation {
	t.Helper()
	waiting, err := gate.Await(t.Context(), 1)
	require.NoError(t, err)
	return waiting[0]
}

// hookPhases are what the trace says of a hook, in order.
func hookPhases(cp *envtest.ControlPlane, kind trace.HookKind, name string) []trace.Phase {
	var phases []trace.Phase
	for _, r := range cp.Trace().Records() {
		if hook, ok := r.Event.(trace.Hook); ok && hook.Kind == kind && hook.Name == name {
			phases = append(phases, hook.Phase)
		}
	}
	return phases
}

// startError is what a control plane fails with that has a rule from the start.
func startError(t testing.TB, rules ...string) error {
	t.Helper()
	cp, err := envtest.Launch(t.Context(), envtest.WithFaults(rules...))
	if err == nil {
		require.NoError(t, cp.Stop(t.Context()))
	}
	return err
}

func showPostStart(t testing.TB, cp *envtest.ControlPlane) {
	gate := gateOf(t, cp, "hook/"+crdHook+" verb=post-start")
	op := awaitOne(t, gate)
	assert.Equal(t, fault.Operation{Point: "hook/" + crdHook, Phase: fault.Before, Server: "apiserver-0", Verb: "post-start", Occurrence: 1}, op)
	assert.Equal(t, []string{crdHook}, heldHooks(cp))
	assert.False(t, ready(t, cp))
	assert.Contains(t, redChecks(t, cp), "poststarthook/"+crdHook)

	gate.Release(1)
	require.NoError(t, cp.WaitReady(t.Context()))
	assert.Equal(t, []trace.Phase{trace.Held, trace.Released, trace.Start, trace.End}, hookPhases(cp, trace.PostStart, crdHook))
	assert.Equal(t, []trace.Phase{trace.Start, trace.End}, hookPhases(cp, trace.PostStart, "rbac/bootstrap-roles"), "another hook")
	assert.Empty(t, hookPhases(cp, trace.PostStart, tokenHook), "a hook that was dropped")

	assert.ErrorContains(t, startError(t, "fail hook/"+crdHook+" with=error"), `post-start hook "`+crdHook+`" failed: injected at hook/`+crdHook)
	assert.ErrorIs(t, startError(t, "crash hook/"+crdHook), fault.ErrCrashed)
}

// launched starts a control plane in a test that goes on to stop it.
func launched(t testing.TB, opts ...envtest.Option) *envtest.ControlPlane {
	t.Helper()
	cp, err := envtest.Launch(t.Context(), opts...)
	require.NoError(t, err)
	return cp
}

// stopping begins to stop a control plane.
func stopping(t testing.TB, cp *envtest.ControlPlane) (stopped <-chan error) {
	done := make(chan error, 1)
	go func() { done <- cp.Stop(t.Context()) }()
	return done
}

func showPreShutdown(t testing.TB, cp *envtest.ControlPlane) {
	rule := "hook/" + shutdownHook + " verb=pre-shutdown"
	held := launched(t)
	gate := gateOf(t, held, rule)
	stopped := stopping(t, held)
	op := awaitOne(t, gate)
	assert.Equal(t, fault.Operation{Point: "hook/" + shutdownHook, Phase: fault.Before, Server: "apiserver-0", Verb: "pre-shutdown", Occurrence: 1}, op)
	_, err := kubernetes.NewForConfigOrDie(held.Config()).Discovery().ServerVersion()
	assert.NoError(t, err, "the server answers until its hooks have run")
	gate.Release(1)
	assert.NoError(t, <-stopped)
	assert.Equal(t, []trace.Phase{trace.Held, trace.Released, trace.Start, trace.End}, hookPhases(held, trace.PreShutdown, shutdownHook))

	failed := launched(t, envtest.WithFaults("fail "+rule+" with=error"))
	assert.NoError(t, failed.Stop(t.Context()))
	assert.ErrorContains(t, failed.Err(), `PreShutdownHook "`+shutdownHook+`" failed: injected at hook/`)

	dropped := launched(t, envtest.WithFaults("drop "+rule))
	assert.NoError(t, dropped.Stop(t.Context()))
	assert.Empty(t, hookPhases(dropped, trace.PreShutdown, shutdownHook))

	crashed := launched(t, envtest.WithFaults("crash "+rule))
	assert.NoError(t, crashed.Stop(t.Context()))
	assert.ErrorIs(t, crashed.Err(), fault.ErrCrashed)
}

// unknownPath is how the server answers for a path that no server of the chain serves.
func unknownPath(t testing.TB, cp *envtest.ControlPlane) int {
	t.Helper()
	var code int
	kubernetes.NewForConfigOrDie(cp.Config()).RESTClient().Get().AbsPath("/apis/absent.example.com/v1/things").Do(t.Context()).StatusCode(&code)
	return code
}

// signals are the lifecycle signals that the trace has.
func signals(cp *envtest.ControlPlane) []string {
	var names []string
	for _, r := range cp.Trace().Records() {
		if s, ok := r.Event.(trace.Signal); ok {
			names = append(names, s.Name)
		}
	}
	return names
}

func showSignal(t testing.TB, cp *envtest.ControlPlane) {
	gate := gateOf(t, cp, "signal/"+mux)
	op := awaitOne(t, gate)
	assert.Equal(t, fault.Operation{Point: "signal/" + mux, Phase: fault.Before, Server: "apiserver-0", Occurrence: 1}, op)
	assert.Equal(t, 503, unknownPath(t, cp), "before all paths are known")
	gate.Release(1)
	awaitSignal(t, cp, mux)
	assert.Equal(t, 404, unknownPath(t, cp))
	require.NoError(t, cp.WaitReady(t.Context()))
	awaitSignal(t, cp, "HasBeenReady")

	dropped := launched(t, envtest.WithFaults("drop signal/"+mux))
	require.NoError(t, dropped.WaitReady(t.Context()))
	assert.Equal(t, 503, unknownPath(t, dropped))
	assert.NotContains(t, signals(dropped), mux)
	inject(t, dropped, "fire signal/"+mux)
	assert.Equal(t, 404, unknownPath(t, dropped))
	assert.NoError(t, dropped.Stop(t.Context()))

	assert.ErrorIs(t, startError(t, "crash signal/HasBeenReady"), fault.ErrCrashed)
}

// awaitSignal waits for a lifecycle signal.
func awaitSignal(t testing.TB, cp *envtest.ControlPlane, name string) {
	t.Helper()
	_, err := cp.Trace().Await(t.Context(), func(r trace.Record) bool { return r.Event == trace.Signal{Name: name} })
	require.NoError(t, err)
}

// TestStopSaysWhatHolds holds what comes after a stop has begun. Stop gives up in
// time, says what held it, and leaves nothing behind: the end of the bubble would
// not come otherwise.
func TestStopSaysWhatHolds(t *testing.T) {
	tests := map[string]string{
		"hold hook/" + shutdownHook + " verb=pre-shutdown": "hook/" + shutdownHook + " pre-shutdown on apiserver-0 waits because of the rule",
		"hold signal/NotAcceptingNewRequest":               "signal/NotAcceptingNewRequest on apiserver-0 waits because of the rule",
		"drop signal/NotAcceptingNewRequest":               "apiserver-0 has not terminated",
	}
	for rule, want := range tests {
		t.Run(strings.ReplaceAll(rule, "/", " "), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cp := launched(t, envtest.WithFaults(rule), envtest.WithTimeouts(0, 20*time.Second))
				began := time.Now()
				err := cp.Stop(t.Context())
				require.ErrorContains(t, err, want)
				assert.NotContains(t, err.Error(), "have not ended", "what was held has ended")
				assert.InDelta(t, 16, time.Since(began).Seconds(), 2, "three quarters of the limit, and what upstream's termination takes when it is let go")
			})
		})
	}
}

// TestDroppedHooks drops hooks that others wait for: the server never is ready,
// but it stops at once, and leaves nothing behind.
func TestDroppedHooks(t *testing.T) {
	for _, hook := range []string{"*", "start-apiextensions-informers", "generic-apiserver-start-informers", "start-kube-aggregator-informers"} {
		t.Run(hook, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// The signal is held so that the start does not wait until the server is ready.
				cp := launched(t, envtest.WithFaults("drop hook/"+hook+" verb=post-start", "hold signal/HasBeenReady optional"), envtest.WithoutLatency())
				synctest.Wait() // until every hook has come that comes
				began := time.Now()
				assert.NoError(t, cp.Stop(t.Context()))
				assert.Less(t, time.Since(began), 5*time.Second)
				for _, name := range hooksOf(cp) {
					if hook == "*" || hook == name {
						assert.Empty(t, hookPhases(cp, trace.PostStart, name), "%s", name)
					}
				}
			})
		})
	}
}

// TestHoldEveryHookInTurn holds all hooks, and releases each by its name.
func TestHoldEveryHookInTurn(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		hooks := hooksOf(cp)
		assert.Equal(t, hooks, heldHooks(cp))
		for len(hooks) > 0 {
			synctest.Wait()
			assert.Equal(t, []trace.Phase{trace.Held}, hookPhases(cp, trace.PostStart, hooks[0]))
			require.NoError(t, cp.Faults().Release("hook/"+hooks[0]))
			hooks = hooks[1:]
			assert.True(t, slices.Equal(hooks, heldHooks(cp)))
		}
		require.NoError(t, cp.WaitReady(t.Context()))
	}, envtest.WithFaults("hold hook/* verb=post-start"))
}

// TestRuleNames adds rules to a running server, which knows what there is.
func TestRuleNames(t *testing.T) {
	crd := widgetCRD()
	resource := crd.Spec.Names.Plural + "." + crd.Spec.Group
	tests := map[string]string{
		"hold store/put resource=configmap":                                "did you mean configmaps?",
		"hold http/update resource=pod/status":                             "did you mean pods?",
		"hold http/update resource=pods/status":                            "",
		"hold http/update resource=pods/statuss":                           `unknown subresource "statuss" of pods; did you mean status?`,
		"hold http/update resource=configmaps/status":                      "configmaps have no subresources",
		"hold http/update resource=deployments.apps/*":                     "",
		"hold store/put resource=selfsubjectreviews.authentication.k8s.io": "",
		"hold cache/lease.coordination.k8s.io verb=ready":                  "did you mean cache/leases.coordination.k8s.io?",
		"hold store/put resource=things.example.org":                       "", // a CRD may bring it
		"hold store/put resource=" + resource:                              "",
		"hold http/update resource=" + resource + "/status":                "",
		"hold http/update resource=" + resource + "/state":                 `unknown subresource "state" of ` + resource,
		"hold store/put resource=x" + resource:                             "did you mean " + resource,
		"hold hook/crd-informer-synce verb=post-start":                     "did you mean hook/crd-informer-synced?",
		"hold signal/Nothing":                                              "unknown point",
		"hold hook/nothing":                                                "there is hook/aggregator-reload-proxy-client-cert, hook/apiservice-discovery-controller, hook/",
		"hold hook/" + crdHook + " verb=pre-shutdown":                      `unknown verb "pre-shutdown" at hook/` + crdHook + "; there is post-start",
		"hold store/put server=apiserver-7":                                `unknown server "apiserver-7"; did you mean apiserver-0?`,
		"lose-leader store/put":                                            "lose-leader can't be done here: the store has no leader to lose",
	}
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		for text, want := range tests {
			rule, err := fault.Parse(text+" optional", nil)
			require.NoError(t, err)
			entries, err := cp.Faults().Add(rule)
			if want != "" {
				assert.ErrorContains(t, err, want, "%s", text)
				continue
			}
			if assert.NoError(t, err, "%s", text) && assert.NotNil(t, entries[0].Gate(), "%s", text) {
				entries[0].Gate().Open()
			}
		}
	}, envtest.WithCRDs(crd))
}
