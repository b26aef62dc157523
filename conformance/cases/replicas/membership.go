package replicas

import (
	"context"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var membershipCases = suite.Launching([]suite.Case{
	{ID: "S20/each-server-has-an-identity", Failure: true, Test: eachServerHasAnIdentity,
		Source: "KEP-1965; k8s.io/kubernetes/pkg/controlplane/apiserver/server.go, identity lease",
		Promise: "Each server has an identity Lease of its own; one that crashes leaves it behind, and takes it up " +
			"again, with the same name, when it is back."},
	{ID: "S13/endpoints-follow-the-servers", Failure: true, Test: endpointsFollow,
		Source: "k8s.io/kubernetes/pkg/controlplane/reconcilers/lease.go, RemoveEndpoints; " +
			"k8s.io/kubernetes/pkg/controlplane/controller/kubernetesservice/controller.go, Stop",
		Promise: "The endpoints of default/kubernetes are the servers: one that stops has left them when it ends, " +
			"and is back among them when it is started again."},
	{ID: "S16/other-server-serves-on", Level: suite.Core, Failure: true, Test: otherServesOn,
		Source: "k8s.io/apiserver/pkg/storage/etcd3/store.go: what is acknowledged is in the store",
		Promise: "When one server crashes, another has all that it acknowledged, and a watch goes on there from the " +
			"last event seen, without a gap."},
})

// identities returns the holders of the identity Leases, by the Leases' names.
func identities(ctx context.Context, t *suite.T) map[string]coordinationv1.LeaseSpec {
	found := map[string]coordinationv1.LeaseSpec{}
	for _, lease := range t.Identities(ctx) {
		found[lease.Name] = lease.Spec
	}
	return found
}

// renewed reports whether these are the same Leases, of which one has another holder.
func renewed(before, after map[string]coordinationv1.LeaseSpec) bool {
	others := 0
	for name, lease := range before {
		if again, found := after[name]; !found {
			return false
		} else if *again.HolderIdentity != *lease.HolderIdentity {
			others++
		}
	}
	return others == 1 && len(after) == len(before)
}

func eachServerHasAnIdentity(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx, envtest.WithReplicas(2))
	t.Eventually(ctx, func() int { return len(identities(ctx, t)) }).Should(gomega.Equal(2))
	before := identities(ctx, t)
	holders := map[string]bool{}
	for _, lease := range before {
		holders[*lease.HolderIdentity] = true
	}
	t.Expect(holders).To(gomega.HaveLen(2), "servers share a holder identity: %v", before)
	crashed := cp.Servers()[1]
	t.Must(crashed.Crash(ctx), "crash a server")
	t.Expect(identities(ctx, t)).To(gomega.HaveLen(2))
	t.Must(crashed.Restart(ctx), "start it again")
	// A server that starts removes the Lease of its last run, and makes it anew once it is ready.
	t.Eventually(ctx, func() bool { return renewed(before, identities(ctx, t)) }).
		Should(gomega.BeTrue(), "the server that is back has not taken up its Lease: %v", before)
}

func endpointsFollow(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx, envtest.WithReplicas(2))
	t.Eventually(ctx, t.ServerAddresses).Should(gomega.Equal([]string{"192.0.2.1", "192.0.2.2"}))
	server := cp.Servers()[1]
	t.Must(server.Stop(ctx), "stop a server")
	t.Expect(t.ServerAddresses(ctx)).To(gomega.Equal([]string{"192.0.2.1"}), "the server that stopped is still listed")
	t.Must(server.Restart(ctx), "start it again")
	t.Eventually(ctx, t.ServerAddresses).Should(gomega.Equal([]string{"192.0.2.1", "192.0.2.2"}))
}

func otherServesOn(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx, envtest.WithReplicas(2))
	t.Namespace(ctx)
	first, second := t.With(cp.Servers()[0].Config()), t.With(cp.Servers()[1].Config())
	here, there := first.ConfigMaps(ctx), second.ConfigMaps(ctx)
	events := first.Watch(ctx, here.Watch, here.Mine())
	defer events.Stop() // its last event is that the connection broke
	here.Make(ctx, "one")
	seen := events.NextConfigMap(ctx, "ADDED")
	acknowledged := here.Make(ctx, "two")
	t.Must(cp.Servers()[0].Crash(ctx), "crash a server")
	t.Expect(there.Read(ctx, "two").ResourceVersion).To(gomega.Equal(acknowledged.ResourceVersion))
	resumed := second.Watch(ctx, there.Watch, there.Mine(suite.From(seen.ResourceVersion)))
	defer resumed.Stop()
	there.Make(ctx, "three")
	t.Expect(suite.Brief(resumed.Take(ctx, 2))).To(gomega.Equal([]string{"ADDED two", "ADDED three"}))
}
