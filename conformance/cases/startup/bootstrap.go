package startup

import (
	"context"
	"encoding/pem"
	"maps"
	"net/http"
	"time"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var bootstrapCases = []suite.Case{
	{ID: "S13/system-namespaces-are-immortal", Level: suite.Core, Failure: true, Test: systemNamespacesAreImmortal,
		Source:  "k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go, immortalNamespaces",
		Promise: "The namespaces default, kube-system and kube-public can't be deleted: the answer is 403."},
	{ID: "S13/authentication-config-map-comes-back", Failure: true, Needs: suite.Launch, Test: authenticationConfigMap,
		Source: "k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust/" +
			"cluster_authentication_trust_controller.go",
		Promise: "kube-system/extension-apiserver-authentication has the authority of client certificates in PEM, " +
			"and is made anew when it is deleted."},
	{ID: "S13/kubernetes-service-is-repaired", Waits: true, Failure: true, Needs: suite.Launch,
		Test: kubernetesServiceIsRepaired,
		Source: "k8s.io/kubernetes/pkg/controlplane/controller/kubernetesservice/controller.go, " +
			"CreateOrUpdateMasterServiceIfNeeded",
		Promise: "The service default/kubernetes is made anew with the same cluster IP when it is deleted, by the " +
			"time the server has looked again."},
	{ID: "S13/cluster-ip-has-an-address", Needs: suite.Launch, Test: clusterIPHasAnAddress,
		Source: "KEP-1880; k8s.io/kubernetes/pkg/registry/core/service/ipallocator/ipallocator.go, createIPAddress",
		Promise: "The cluster IP of a Service has an IPAddress that refers to it and is managed by the allocator; it " +
			"goes with the Service."},
	{ID: "S13/default-roles-are-reconciled", Level: suite.Core, Failure: true, Needs: suite.Launch,
		Test: defaultRolesAreReconciled,
		Source: "k8s.io/kubernetes/pkg/registry/rbac/rest/storage_rbac.go, EnsureRBACPolicy; " +
			"k8s.io/component-helpers/auth/rbac/reconciliation/reconcile_role.go",
		Promise: "When a server starts, default cluster roles and bindings get back what they have lost and keep " +
			"what was added, unless they are annotated rbac.authorization.kubernetes.io/autoupdate=false."},
	{ID: "S13/identity-lease-is-held", Waits: true, Needs: suite.Launch, Test: identityLeaseIsHeld,
		Source: "KEP-1965; k8s.io/kubernetes/pkg/controlplane/apiserver/server.go, IdentityLeaseDurationSeconds",
		Promise: "Each server holds a Lease apiserver-ID in kube-system, labelled kube-apiserver and with its host " +
			"name, for an hour, and makes it anew when it is deleted."},
}

func systemNamespacesAreImmortal(ctx context.Context, t *suite.T) {
	dryRun := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}} // for servers that do not refuse
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic} {
		err := t.Kube.CoreV1().Namespaces().Delete(ctx, name, dryRun)
		t.Expect(err).To(suite.BeStatus(suite.Forbidden))
		t.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("this namespace may not be deleted")))
	}
	namespace := t.Namespace(ctx)
	t.Must(t.Kube.CoreV1().Namespaces().Delete(ctx, namespace, dryRun), "delete namespace %s", namespace)
}

func authenticationConfigMap(ctx context.Context, beside *suite.T) {
	_, t := beside.Launch(ctx)
	const name = "extension-apiserver-authentication"
	t.Served(ctx, "/api/v1/namespaces/kube-system/configmaps/"+name)
	maps := t.Kube.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	before := suite.Get(ctx, t, maps.Get, name)
	block, _ := pem.Decode([]byte(before.Data["client-ca-file"]))
	t.Expect(block).NotTo(gomega.BeNil(), "client-ca-file is not PEM: %q", before.Data)
	t.Must(maps.Delete(ctx, name, metav1.DeleteOptions{}), "delete ConfigMap %s", name)
	t.Eventually(ctx, maps.Get).WithArguments(name, metav1.GetOptions{}).Should(gomega.And(
		gomega.HaveField("UID", gomega.Not(gomega.Equal(before.UID))), gomega.HaveField("Data", before.Data)))
}

func kubernetesServiceIsRepaired(ctx context.Context, beside *suite.T) {
	_, t := beside.Launch(ctx)
	t.Served(ctx, "/api/v1/namespaces/default/services/kubernetes")
	services := t.Kube.CoreV1().Services(metav1.NamespaceDefault)
	before := suite.Get(ctx, t, services.Get, "kubernetes")
	t.Must(services.Delete(ctx, "kubernetes", metav1.DeleteOptions{}), "delete Service kubernetes")
	t.Eventually(ctx, services.Get).WithArguments("kubernetes", metav1.GetOptions{}).Should(gomega.And(
		gomega.HaveField("UID", gomega.Not(gomega.Equal(before.UID))),
		gomega.HaveField("Spec.ClusterIP", before.Spec.ClusterIP),
		gomega.HaveField("Spec.Ports", before.Spec.Ports)))
}

func clusterIPHasAnAddress(ctx context.Context, beside *suite.T) {
	_, t := beside.Launch(ctx)
	service := t.MakeService(ctx, "one")
	addresses := t.Kube.NetworkingV1().IPAddresses()
	before := suite.Get(ctx, t, addresses.Get, service.Spec.ClusterIP)
	t.Expect(before.Spec.ParentRef).To(gomega.And(gomega.HaveField("Resource", "services"),
		gomega.HaveField("Namespace", service.Namespace), gomega.HaveField("Name", "one")))
	t.Expect(before.Labels).To(gomega.HaveKeyWithValue("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"))
	t.Must(t.Kube.CoreV1().Services(service.Namespace).Delete(ctx, "one", metav1.DeleteOptions{}), "delete Service one")
	t.Eventually(ctx, func() error { return suite.ErrorOf(addresses.Get(ctx, before.Name, metav1.GetOptions{})) }).
		Should(suite.BeStatus(suite.NotFound), "the IPAddress outlives its Service")
}

func defaultRolesAreReconciled(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx)
	roles := t.Kube.RbacV1().ClusterRoles()
	own := rbacv1.PolicyRule{NonResourceURLs: []string{"/own"}, Verbs: []string{"get"}}
	change := func(name string, annotations map[string]string) *rbacv1.ClusterRole {
		role := suite.Get(ctx, t, roles.Get, name)
		whole := role.DeepCopy()
		maps.Copy(role.Annotations, annotations)
		role.Rules = []rbacv1.PolicyRule{own}
		suite.Update(ctx, t, roles.Update, role)
		return whole
	}
	whole := change("system:discovery", nil)
	change("system:public-info-viewer", map[string]string{rbacv1.AutoUpdateAnnotationKey: "false"})
	t.Must(t.Kube.RbacV1().ClusterRoleBindings().Delete(ctx, "system:basic-user", metav1.DeleteOptions{}),
		"delete ClusterRoleBinding system:basic-user")
	server := cp.Servers()[0]
	t.Must(server.Stop(ctx), "stop the server")
	t.Must(server.Restart(ctx), "start the server again")
	urls := func(rules []rbacv1.PolicyRule) []string {
		var all []string
		for _, rule := range rules {
			all = append(all, rule.NonResourceURLs...)
		}
		return all
	}
	allowed := func(name string) []string {
		role := suite.Get(ctx, t, roles.Get, name)
		return urls(role.Rules)
	}
	t.Expect(allowed("system:discovery")).To(gomega.ContainElements(append(urls(whole.Rules), "/own")))
	t.Expect(allowed("system:public-info-viewer")).To(gomega.Equal([]string{"/own"}))
	t.Answered(ctx, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:basic-user", http.StatusOK)
}

func identityLeaseIsHeld(ctx context.Context, beside *suite.T) {
	_, t := beside.Launch(ctx)
	leases := t.Kube.CoordinationV1().Leases(metav1.NamespaceSystem)
	t.Eventually(ctx, t.Identities).Should(gomega.HaveLen(1), "a server makes its Lease in the background")
	lease := t.Identities(ctx)[0]
	t.Expect(lease.Name).To(gomega.MatchRegexp(`^apiserver-[a-z0-9]{26}$`))
	t.Expect(lease.Labels).To(gomega.HaveKeyWithValue("kubernetes.io/hostname", gomega.Not(gomega.BeEmpty())))
	t.Expect(lease.Spec.HolderIdentity).To(gomega.HaveValue(gomega.HavePrefix(lease.Name + "_")))
	t.Expect(lease.Spec.LeaseDurationSeconds).To(gomega.HaveValue(gomega.BeEquivalentTo(time.Hour.Seconds())))
	t.Must(leases.Delete(ctx, lease.Name, metav1.DeleteOptions{}), "delete Lease %s", lease.Name)
	t.Eventually(ctx, leases.Get).WithArguments(lease.Name, metav1.GetOptions{}).Should(gomega.And(
		gomega.HaveField("UID", gomega.Not(gomega.Equal(lease.UID))), gomega.HaveField("Spec.HolderIdentity",
			lease.Spec.HolderIdentity)))
}
