// Package shutdown has the cases about how a server ends. A gate at a lifecycle signal keeps a
// shutdown where it is, while a case looks at what is still answered.
package shutdown

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

// Cases are the cases of this area.
var Cases = slices.Concat(endCases, drainCases)

const run = "k8s.io/apiserver/pkg/server/genericapiserver.go, RunWithContext"

var endCases = suite.Launching([]suite.Case{
	{ID: "S16/readyz-fails-first", Level: suite.Core, Failure: true, Test: readyzFailsFirst,
		Source: run + "; k8s.io/apiserver/pkg/server/healthz.go, addReadyzShutdownCheck",
		Promise: "As soon as a server is told to stop, /readyz is 500 because of the check shutdown alone, while " +
			"/livez is 200 and reads, writes and watches go on."},
	{ID: "S16/shutdown-waits-for-its-hooks", Test: shutdownWaitsForItsHooks,
		Source: run + "; k8s.io/apiserver/pkg/server/hooks.go, RunPreShutdownHooks",
		Promise: "A server takes requests until its pre-shutdown hooks have returned, even if the shutdown delay is " +
			"over, and then signals PreShutdownHooksStopped before NotAcceptingNewRequest."},
	{ID: "S16/shutdown-delay-is-kept", Test: shutdownDelayIsKept,
		Source: run + ", ShutdownDelayDuration",
		Promise: "Between being told to stop and taking nothing new, a server waits for --shutdown-delay-duration, " +
			"and serves meanwhile."},
	{ID: "S16/failed-post-start-hook-ends-the-server", Failure: true, Test: failedHookEndsTheServer,
		Source: "k8s.io/apiserver/pkg/server/hooks.go, runPostStartHook",
		Promise: "A post-start hook that fails ends the server, whose error names the hook; one that returns is a " +
			"check of /readyz."},
	{ID: "S16/restarted-server-has-what-was-written", Level: suite.Core, Failure: true, Test: restartedServerHasAll,
		Source: run,
		Promise: "What a server acknowledged before it stopped or crashed is there, at the same resourceVersion, " +
			"when it is started again."},
})

// stop begins a graceful end of the only server. The function that it returns waits for it.
func stop(ctx context.Context, t *suite.T, cp *envtest.ControlPlane) (ended func()) {
	done := make(chan error, 1)
	go func() { done <- cp.Servers()[0].Stop(context.WithoutCancel(ctx)) }()
	return func() {
		select {
		case err := <-done:
			t.Must(err, "stop the server")
		case <-ctx.Done():
			t.Must(context.Cause(ctx), "the server did not stop")
		}
	}
}

// signal waits for a lifecycle signal, and returns when it was.
func signal(ctx context.Context, t *suite.T, cp *envtest.ControlPlane, name string) time.Duration {
	fired, err := cp.Trace().Await(ctx, func(r trace.Record) bool { return r.Event == trace.Signal{Name: name} })
	t.Must(err, "signal %s", name)
	return fired.Elapsed
}

// signals returns the lifecycle signals so far, in their order.
func signals(cp *envtest.ControlPlane) []string {
	var fired []string
	for _, record := range cp.Trace().Records() {
		if signal, ok := record.Event.(trace.Signal); ok {
			fired = append(fired, signal.Name)
		}
	}
	return fired
}

// preShutdownHook is one that every server has.
const preShutdownHook = "hook/stop-kubernetes-service-controller verb=pre-shutdown"

// await waits until one operation waits at a gate.
func await(ctx context.Context, t *suite.T, held *fault.Gate) {
	t.Must(suite.ErrorOf(held.Await(ctx, 1)), "nothing came to the gate")
}

func readyzFailsFirst(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx)
	maps := t.ConfigMaps(ctx)
	events := t.Watch(ctx, maps.Watch, maps.Mine())
	hook := t.Gate(cp, preShutdownHook)
	t.Answered(ctx, "/readyz", http.StatusOK)
	ended := stop(ctx, t, cp)
	await(ctx, t, hook)
	t.Expect(t.Readyz(ctx)).To(gomega.Equal(`500 ["[-]shutdown failed: reason withheld" "readyz check failed"]`))
	t.Answered(ctx, "/livez", http.StatusOK)
	t.Answered(ctx, "/healthz", http.StatusOK)
	maps.Make(ctx, "late")
	events.NextConfigMap(ctx, "ADDED")
	hook.Open()
	ended()
}

func shutdownWaitsForItsHooks(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx)
	hook := t.Gate(cp, preShutdownHook)
	ended := stop(ctx, t, cp)
	await(ctx, t, hook)
	signal(ctx, t, cp, "AfterShutdownDelayDuration")
	t.ConfigMaps(ctx).Make(ctx, "late")
	t.Answered(ctx, "/version", http.StatusOK)
	t.Expect(signals(cp)).NotTo(gomega.ContainElement("NotAcceptingNewRequest"))
	hook.Open()
	ended()
	t.Expect(after(signals(cp), "ShutdownInitiated")).To(gomega.Equal([]string{
		"ShutdownInitiated", "AfterShutdownDelayDuration", "PreShutdownHooksStopped", "NotAcceptingNewRequest",
	}))
}

// after returns the first four signals from one on: what the server does then, it does in no
// certain order.
func after(signals []string, first string) []string {
	at := slices.Index(signals, first)
	if at < 0 {
		return nil
	}
	return signals[at:min(at+4, len(signals))]
}

func shutdownDelayIsKept(ctx context.Context, beside *suite.T) {
	const delay = time.Second
	cp, t := beside.Launch(ctx, envtest.WithFlags("--shutdown-delay-duration="+delay.String()))
	t.Answered(ctx, "/version", http.StatusOK)
	ended := stop(ctx, t, cp)
	began := signal(ctx, t, cp, "ShutdownInitiated")
	t.Answered(ctx, "/version", http.StatusOK)
	over := signal(ctx, t, cp, "NotAcceptingNewRequest")
	ended()
	t.Expect(over-began).To(gomega.BeNumerically(">=", delay), "new requests were refused too early")
	then := after(signals(cp), "ShutdownInitiated")
	// The hooks run beside the delay, and either may be over first.
	t.Expect(then).To(gomega.ConsistOf("ShutdownInitiated", "PreShutdownHooksStopped", "AfterShutdownDelayDuration",
		"NotAcceptingNewRequest"))
	t.Expect(then[3]).To(gomega.Equal("NotAcceptingNewRequest"))
}

func failedHookEndsTheServer(ctx context.Context, beside *suite.T) {
	const name = "conformance/a-hook"
	why := beside.NotLaunched(ctx, envtest.WithPostStartHook(name,
		func(context.Context, *rest.Config) error { return errFailed }))
	beside.Expect(why).To(gomega.And(gomega.ContainSubstring(name), gomega.ContainSubstring(errFailed.Error())))
	_, t := beside.Launch(ctx, envtest.WithPostStartHook(name,
		func(context.Context, *rest.Config) error { return nil }))
	t.Answered(ctx, "/readyz/poststarthook/"+name, http.StatusOK)
	t.Answered(ctx, "/readyz", http.StatusOK)
}

func restartedServerHasAll(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx)
	maps := t.ConfigMaps(ctx)
	first := maps.Make(ctx, "first")
	server := cp.Servers()[0]
	stop(ctx, t, cp)()
	t.Must(server.Restart(ctx), "start the server again")
	t.Expect(maps.Read(ctx, "first").ResourceVersion).To(gomega.Equal(first.ResourceVersion))
	second := maps.Make(ctx, "second")
	t.Must(server.Crash(ctx), "crash the server")
	t.Must(server.Restart(ctx), "start the server again")
	list := maps.MustList(ctx, metav1.ListOptions{LabelSelector: maps.Mine().LabelSelector})
	t.Expect(suite.Names(list)).To(gomega.Equal([]string{"first", "second"}))
	t.Expect(maps.Read(ctx, "second").ResourceVersion).To(gomega.Equal(second.ResourceVersion))
	t.Expect(t.Number(maps.Make(ctx, "third").ResourceVersion)).
		To(gomega.BeNumerically(">", t.Number(second.ResourceVersion)))
}
