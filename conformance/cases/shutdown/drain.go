package shutdown

import (
	"context"
	"errors"
	"net/http"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/fakes/webhook"
)

var errFailed = errors.New("it would not start")

var drainCases = suite.Launching([]suite.Case{
	{ID: "S16/new-requests-are-told-to-retry", Failure: true, Test: newRequestsAreToldToRetry,
		Source: "k8s.io/apiserver/pkg/server/filters/with_retry_after.go, WithRetryAfter",
		Promise: "With --shutdown-send-retry-after, a draining server answers new requests 429 with Retry-After: 5, " +
			"still answers its health checks, and closes its port last."},
	{ID: "S16/requests-in-flight-are-answered", Level: suite.Core, Failure: true, Test: requestsInFlightAreAnswered,
		Source: run + ", NonLongRunningRequestWaitGroup; k8s.io/apiserver/pkg/server/filters/waitgroup.go",
		Promise: "A short request that a stopping server has taken is answered, and done, before the server ends, " +
			"while new connections are refused."},
	{ID: "S16/watches-end-with-the-server", Test: watchesEndWithTheServer,
		Source: run + ", WatchRequestWaitGroup; k8s.io/apiserver/pkg/server/filters/watch_termination.go",
		Promise: "Watches last as long as a stopping server takes requests, then end without an error within " +
			"--shutdown-watch-termination-grace-period, and the next server has what they saw."},
	{ID: "S16/audit-events-are-flushed", Test: auditEventsAreFlushed,
		Source: run + ", AuditBackend.Shutdown; k8s.io/apiserver/plugin/pkg/audit/buffered/buffered.go",
		Promise: "A server that stops sends the audit events that it still has, up to the last request it answered, " +
			"whatever the size of a batch is."},
})

// write creates a ConfigMap in the background. The function that it returns waits for it.
func write(ctx context.Context, t *suite.T, maps *suite.ConfigMaps, name string) (written func() *corev1.ConfigMap) {
	type result struct {
		object *corev1.ConfigMap
		err    error
	}
	done := make(chan result, 1)
	go func() {
		object, err := maps.Create(ctx, maps.Object(name, "first"), metav1.CreateOptions{})
		done <- result{object, err}
	}()
	return func() *corev1.ConfigMap {
		got := <-done
		t.Must(got.err, "create ConfigMap %s, which was in flight", name)
		return got.object
	}
}

func newRequestsAreToldToRetry(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx, envtest.WithFlags("--shutdown-send-retry-after"))
	maps := t.ConfigMaps(ctx)
	slow := holdAdmission(ctx, t)
	written := write(ctx, t, maps, "slow")
	t.Must(slow.Await(ctx, 1), "the webhook is not asked")
	t.Answered(ctx, "/version", http.StatusOK)
	ended := stop(ctx, t, cp)
	signal(ctx, t, cp, "NotAcceptingNewRequest")
	got := t.Answered(ctx, "/version", http.StatusTooManyRequests)
	t.Expect(got.Header.Get("Retry-After")).To(gomega.Equal("5"), "%s", got)
	t.Expect(string(got.Body)).To(gomega.Equal("The apiserver is shutting down, please try again later.\n"))
	t.Answered(ctx, "/readyz", http.StatusInternalServerError)
	t.Answered(ctx, "/livez", http.StatusOK)
	t.Expect(signals(cp)).NotTo(gomega.ContainElement("HTTPServerStoppedListening"))
	slow.Open()
	written()
	ended()
	t.Expect(signals(cp)).To(gomega.ContainElements("InFlightRequestsDrained", "HTTPServerStoppedListening"))
}

func requestsInFlightAreAnswered(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx)
	maps := t.ConfigMaps(ctx)
	held := holdAdmission(ctx, t)
	written := write(ctx, t, maps, "slow")
	t.Must(held.Await(ctx, 1), "the webhook is not asked")
	ended := stop(ctx, t, cp)
	signal(ctx, t, cp, "HTTPServerStoppedListening")
	_, err := t.Kube.Discovery().ServerVersion()
	t.Expect(utilnet.IsConnectionRefused(err)).To(gomega.BeTrue(), "a server that listens no more answered: %v", err)
	t.Expect(signals(cp)).NotTo(gomega.ContainElement("InFlightRequestsDrained"))
	held.Open()
	slow := written()
	ended()
	t.Expect(signals(cp)).To(gomega.ContainElement("InFlightRequestsDrained"))
	t.Must(cp.Servers()[0].Restart(ctx), "start the server again")
	t.Expect(maps.Read(ctx, "slow").UID).To(gomega.Equal(slow.UID))
}

func watchesEndWithTheServer(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx, envtest.WithFlags("--shutdown-watch-termination-grace-period=10s"))
	maps := t.ConfigMaps(ctx)
	events := t.Watch(ctx, maps.Watch, maps.Mine())
	hook := t.Gate(cp, preShutdownHook)
	ended := stop(ctx, t, cp)
	await(ctx, t, hook)
	maps.Make(ctx, "seen")
	last := events.NextConfigMap(ctx, "ADDED")
	t.Expect(last.Name).To(gomega.Equal("seen"))
	hook.Open()
	t.Expect(suite.Brief(events.Ended(ctx))).To(gomega.BeEmpty())
	ended()
	t.Must(cp.Servers()[0].Restart(ctx), "start the server again")
	list := maps.MustList(ctx, maps.Mine())
	t.Expect(suite.Names(list)).To(gomega.Equal([]string{last.Name}))
	again := t.Watch(ctx, maps.Watch, maps.Mine(suite.From(list.ResourceVersion)))
	maps.Make(ctx, "next")
	t.Expect(suite.Brief(again.Take(ctx, 1))).To(gomega.Equal([]string{"ADDED next"}))
}

func auditEventsAreFlushed(ctx context.Context, beside *suite.T) {
	audit := suite.Serve(beside, "audit", webhook.ServeAudit)
	janes := func() (found []string) {
		for _, event := range audit.Events() {
			if event.ImpersonatedUser != nil && event.ImpersonatedUser.Username == "jane" {
				found = append(found, event.Verb+" "+event.ObjectRef.Name)
			}
		}
		return found
	}
	policy := beside.File("policy.yaml",
		[]byte(`{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
"rules": [{"level": "Metadata", "resources": [{"group": "", "resources": ["configmaps"]}]}]}`))
	cp, t := beside.Launch(ctx, envtest.WithFlags("--audit-policy-file="+policy,
		"--audit-webhook-config-file="+beside.File("audit.kubeconfig", audit.Kubeconfig()),
		"--audit-webhook-mode=batch", "--audit-webhook-batch-max-wait=1h", "--audit-webhook-batch-max-size=1000"))
	path := t.ConfigMaps(ctx).Path()
	as := map[string]string{"Impersonate-User": "jane", "Impersonate-Group": "system:masters"}
	for _, name := range []string{"first", "second"} {
		t.AnsweredTo(ctx, suite.Request{Path: path + "/" + name, Header: as}, http.StatusNotFound)
	}
	t.Expect(janes()).To(gomega.BeEmpty(), "a batch was sent before it was full")
	stop(ctx, t, cp)()
	t.Expect(janes()).To(gomega.Equal([]string{"get first", "get second"}))
}
