package startup

import (
	"context"
	"net/http"
	"time"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var ensuredCases = suite.Launching([]suite.Case{
	{ID: "S13/default-flows-are-kept-up", Failure: true, Test: defaultFlowsAreKeptUp,
		Source: "KEP-1040; k8s.io/kubernetes/pkg/registry/flowcontrol/ensurer/strategy.go, ReviseIfNeeded; " +
			"k8s.io/kubernetes/pkg/registry/flowcontrol/rest/storage_flowcontrol.go",
		Promise: "When a server starts, suggested flow schemas and priority levels that are gone are made anew and " +
			"those that were changed are put back, unless they are annotated " +
			"apf.kubernetes.io/autoupdate-spec=false; those annotated true that no release knows are removed, " +
			"others stay."},
	{ID: "S20/expired-identity-is-removed", Failure: true, Test: expiredIdentityIsRemoved,
		Source: "KEP-1965; k8s.io/kubernetes/pkg/controlplane/controller/apiserverleasegc/gc_controller.go, " +
			"isLeaseExpired",
		Promise: "A server that starts removes the identity Leases of servers that have expired or say no time, and " +
			"no others: not one that holds, nor one of another component or namespace."},
})

func defaultFlowsAreKeptUp(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx)
	schemas, levels := t.Kube.FlowcontrolV1().FlowSchemas(), t.Kube.FlowcontrolV1().PriorityLevelConfigurations()
	const group = "/apis/flowcontrol.apiserver.k8s.io/v1"
	t.Served(ctx, group+"/flowschemas/service-accounts")
	t.Served(ctx, group+"/prioritylevelconfigurations/workload-low")

	change := func(name string, annotations map[string]string) int32 {
		schema := suite.Get(ctx, t, schemas.Get, name)
		before := schema.Spec.MatchingPrecedence
		schema.Annotations, schema.Spec.MatchingPrecedence = annotations, before+1
		suite.Update(ctx, t, schemas.Update, schema)
		return before
	}
	automatic, manual := map[string]string{flowcontrolv1.AutoUpdateAnnotationKey: "true"},
		map[string]string{flowcontrolv1.AutoUpdateAnnotationKey: "false"}
	putBack, kept, unmarked := change("service-accounts", automatic), change("probes", manual), change("system-nodes",
		nil)
	share := func(name string, annotations map[string]string, shares int32) {
		level := suite.Get(ctx, t, levels.Get, name)
		level.Annotations = annotations
		if level.Spec.Exempt != nil {
			level.Spec.Exempt.NominalConcurrencyShares, level.Spec.Exempt.LendablePercent = new(shares),
				new(shares)
		} else {
			level.Spec.Limited.NominalConcurrencyShares = new(shares)
		}
		suite.Update(ctx, t, levels.Update, level)
	}
	share("exempt", automatic, 7)
	share("workload-low", automatic, 7)
	share("workload-high", manual, 7)
	copies := map[string]map[string]string{"automatic": automatic, "manual": manual, "own": nil}
	for name, annotations := range copies {
		schema := suite.Get(ctx, t, schemas.Get, "catch-all")
		schema.ObjectMeta = metav1.ObjectMeta{Name: name, Annotations: annotations}
		suite.Create(ctx, t, schemas.Create, schema)
	}
	t.Must(schemas.Delete(ctx, "kube-scheduler", metav1.DeleteOptions{}), "delete FlowSchema kube-scheduler")
	t.Must(levels.Delete(ctx, "leader-election", metav1.DeleteOptions{}),
		"delete PriorityLevelConfiguration leader-election")
	server := cp.Servers()[0]
	t.Must(server.Stop(ctx), "stop the server")
	t.Must(server.Restart(ctx), "start the server again")

	// The server does all that in the background; what it removes comes last.
	t.Until(ctx, group+"/flowschemas/automatic", http.StatusNotFound, "a flow schema of no release")
	t.Served(ctx, group+"/flowschemas/kube-scheduler")
	t.Served(ctx, group+"/prioritylevelconfigurations/leader-election")
	precedence := func(name string, value int32, marked string) {
		t.Eventually(ctx, schemas.Get).WithArguments(name, metav1.GetOptions{}).Should(gomega.And(
			gomega.HaveField("Spec.MatchingPrecedence", value), gomega.HaveField("Annotations",
				gomega.HaveKeyWithValue(flowcontrolv1.AutoUpdateAnnotationKey, marked))), "FlowSchema %s", name)
	}
	precedence("service-accounts", putBack, "true")
	precedence("probes", kept+1, "false")
	precedence("system-nodes", unmarked+1, "false")
	t.Eventually(ctx, levels.Get).WithArguments("workload-low", metav1.GetOptions{}).
		Should(gomega.HaveField("Spec.Limited.NominalConcurrencyShares", gomega.HaveValue(gomega.BeEquivalentTo(100))))
	t.Expect(levels.Get(ctx, "workload-high", metav1.GetOptions{})).
		To(gomega.HaveField("Spec.Limited.NominalConcurrencyShares", gomega.HaveValue(gomega.BeEquivalentTo(7))))
	t.Expect(levels.Get(ctx, "exempt", metav1.GetOptions{})).To(gomega.HaveField("Spec.Exempt", gomega.And(
		gomega.HaveField("NominalConcurrencyShares",
			gomega.HaveValue(gomega.BeEquivalentTo(7))),
		gomega.HaveField("LendablePercent", gomega.HaveValue(gomega.BeEquivalentTo(7))))),
		"shares of exempt are the administrator's")
	for _, name := range []string{"manual", "own"} {
		t.Answered(ctx, group+"/flowschemas/"+name, http.StatusOK)
	}
}

func expiredIdentityIsRemoved(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx, envtest.WithReplicas(2))
	const of = "apiserver.kubernetes.io/identity"
	now, longAgo := metav1.NewMicroTime(time.Now()), metav1.NewMicroTime(time.Now().Add(-2*time.Hour))
	namespace := t.Namespace(ctx)
	lease := func(namespace, name, component string, renewed *metav1.MicroTime, seconds *int32) {
		meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{of: component}}
		if component == "" {
			meta.Labels = nil
		}
		suite.Create(ctx, t, t.Kube.CoordinationV1().Leases(namespace).Create, &coordinationv1.Lease{ObjectMeta: meta,
			Spec: coordinationv1.LeaseSpec{HolderIdentity: new("somebody"), RenewTime: renewed,
				LeaseDurationSeconds: seconds}})
	}
	server := cp.Servers()[1]
	t.Must(server.Stop(ctx), "stop a server")
	const system, path = metav1.NamespaceSystem, "/apis/coordination.k8s.io/v1/namespaces/"
	lease(system, "expired", "kube-apiserver", &longAgo, new(int32(3600)))
	lease(system, "no-time", "kube-apiserver", nil, new(int32(3600)))
	lease(system, "no-duration", "kube-apiserver", &now, nil)
	lease(system, "holds", "kube-apiserver", &now, new(int32(3600)))
	lease(system, "holds-for-long", "kube-apiserver", &longAgo, new(int32(3*3600)))
	lease(system, "other", "other-apiserver", &longAgo, new(int32(3600)))
	lease(system, "nobodys", "", &longAgo, new(int32(3600)))
	lease(namespace, "elsewhere", "kube-apiserver", &longAgo, new(int32(3600)))
	t.Must(server.Restart(ctx), "start it again")
	for _, name := range []string{"expired", "no-time", "no-duration"} {
		t.Until(ctx, path+system+"/leases/"+name, http.StatusNotFound, "Lease %s", name)
	}
	for _, stays := range []string{system + "/leases/holds", system + "/leases/holds-for-long",
		system + "/leases/other", system + "/leases/nobodys", namespace + "/leases/elsewhere"} {
		t.Answered(ctx, path+stays, http.StatusOK)
	}
}
