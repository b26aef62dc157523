package authorization

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var nodeCases = []suite.Case{
	{ID: "S8/node-reads-what-its-pods-mention", Failure: true, Needs: suite.Launch, Test: nodeReadsWhatItsPodsMention,
		Source: "k8s.io/kubernetes/plugin/pkg/auth/authorizer/node/node_authorizer.go, authorizeReadNamespacedObject",
		Promise: "A node can get a Secret that a Pod bound to it mentions, until the Pod is gone; no other Secret, " +
			"not the list, and not whoever has only the name of the node or only its group."},
	{ID: "S8/node-writes-what-is-its-own", Failure: true, Test: nodeWritesWhatIsItsOwn,
		Source: "k8s.io/kubernetes/plugin/pkg/auth/authorizer/node/node_authorizer.go, authorizeLease and " +
			"authorizeNode",
		Promise: "A node may keep its own Lease in kube-node-lease and no other, create and change Nodes but not " +
			"delete them, and list Services but not create them."},
}

func nodeReadsWhatItsPodsMention(ctx context.Context, t *suite.T) {
	_, t = t.Shared(ctx, "plain")
	ns, kube := t.Namespace(ctx), t.Kube.CoreV1()
	north, south := t.As("system:node:north-"+t.Name, "system:nodes"), t.As("system:node:south-"+t.Name, "system:nodes")
	for _, name := range []string{"mounted", "other"} {
		suite.Create(ctx, t, kube.Secrets(ns).Create, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	secrets := "/api/v1/namespaces/" + ns + "/secrets"
	unrelated := func(as *suite.T, node, name string) {
		status := t.ExpectStatus(as.Get(ctx, secrets+"/"+name), suite.Forbidden)
		t.Expect(status.Message).To(gomega.HaveSuffix(": no relationship found between node '%s-%s' and this object",
			node, t.Name))
	}
	unrelated(north, "north", "mounted")
	pod := suite.Pod("main", "main")
	pod.Spec.NodeName = "north-" + t.Name
	pod.Spec.Volumes = []corev1.Volume{{Name: "secret",
		VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "mounted"}}}}
	suite.Create(ctx, t, kube.Pods(ns).Create, pod)
	code := func() int { return north.Get(ctx, secrets+"/mounted").Code }
	t.Eventually(ctx, code).Should(gomega.Equal(http.StatusOK), "the Pod is on the node")
	unrelated(north, "north", "other")
	unrelated(south, "south", "mounted")
	status := t.ExpectStatus(north.Get(ctx, secrets), suite.Forbidden)
	t.Expect(status.Message).To(gomega.HaveSuffix(": No Object name found"))
	status = t.ExpectStatus(north.Ask(ctx, suite.Request{Method: "DELETE", Path: secrets + "/mounted"}),
		suite.Forbidden)
	t.Expect(status.Message).To(gomega.HaveSuffix(": can only read resources of this type"))
	t.As("north-"+t.Name, "system:nodes").Answered(ctx, secrets+"/mounted", http.StatusForbidden)
	t.As("system:node:north-"+t.Name).Answered(ctx, secrets+"/mounted", http.StatusForbidden)

	t.Must(kube.Pods(ns).Delete(ctx, "main", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}),
		"delete Pod main")
	t.Eventually(ctx, code).Should(gomega.Equal(http.StatusForbidden), "the Pod is gone")
}

func nodeWritesWhatIsItsOwn(ctx context.Context, t *suite.T) {
	node := "system:node:" + t.Name
	ask := func(verb, group, resource, namespace, name string) func(want bool) {
		what := attributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name}
		return func(want bool) {
			allowed := reviewNode(ctx, t, node, what)
			t.Expect(allowed).To(gomega.Equal(want),
				fmt.Sprintf("may a node %s %s/%s %s in %q", verb, group, resource, name, namespace))
		}
	}
	ask("update", "coordination.k8s.io", "leases", "kube-node-lease", t.Name)(true)
	ask("create", "coordination.k8s.io", "leases", "kube-node-lease", "")(true)
	ask("update", "coordination.k8s.io", "leases", "kube-node-lease", "other")(false)
	ask("update", "coordination.k8s.io", "leases", "kube-system", t.Name)(false)
	ask("list", "coordination.k8s.io", "leases", "kube-node-lease", "")(false)
	ask("create", "", "nodes", "", "")(true)
	ask("patch", "", "nodes", "", t.Name)(true)
	ask("delete", "", "nodes", "", t.Name)(false)
	ask("list", "", "services", "", "")(true)
	ask("create", "", "services", "default", "")(false)
}
