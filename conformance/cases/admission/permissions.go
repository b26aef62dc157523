package admission

import (
	"context"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var permissionCases = suite.Launching([]suite.Case{
	{ID: "S9/owner-references-need-permission", Failure: true, Test: ownerReferencesNeedPermission,
		Source: "k8s.io/kubernetes/plugin/pkg/admission/gc/gc_admission.go, Validate",
		Promise: "With OwnerReferencesPermissionEnforcement, who may not delete an object can't give it owners, and " +
			"who may not set finalizers on the owner can't make it wait for the object."},
	{ID: "S9/external-IPs-can-be-denied", Failure: true, Test: externalIPsCanBeDenied,
		Source:  "k8s.io/kubernetes/plugin/pkg/admission/network/denyserviceexternalips/admission.go",
		Promise: "With DenyServiceExternalIPs, a Service that asks for external IPs is refused with 403."},
	{ID: "S9/plugin-can-be-disabled", Test: pluginCanBeDisabled,
		Source: "k8s.io/apiserver/pkg/server/options/admission.go, enabledPluginNames",
		Promise: "What --disable-admission-plugins names does not run, and what --enable-admission-plugins names " +
			"does: a namespace is made for what needs one, and pods keep their tolerations."},
})

// strict returns a T for a control plane with other admission plugins than the default ones.
func strict(ctx context.Context, t *suite.T) *suite.T {
	_, beside := t.Shared(ctx, "strict-admission", envtest.WithFlags(
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement,DenyServiceExternalIPs,NamespaceAutoProvision",
		"--disable-admission-plugins=DefaultTolerationSeconds"))
	return beside
}

func ownerReferencesNeedPermission(ctx context.Context, t *suite.T) {
	beside := strict(ctx, t)
	maps := beside.ConfigMaps(ctx)
	owner := maps.Make(ctx, "owner")
	maps.Make(ctx, "owned")
	may := func(user string, rules ...rbacv1.PolicyRule) *suite.ConfigMaps {
		beside.Grant(ctx, user, user, rules...)
		return beside.As(user).ConfigMaps(ctx)
	}
	write := suite.Rule("configmaps", "get", "create", "update")
	remove := suite.Rule("configmaps", "delete")
	finalize := suite.Rule("configmaps/finalizers", "update")
	writer, remover, finalizer := may("writer", write), may("remover", write, remove), may("finalizer", write, remove,
		finalize)
	refer := func(maps *suite.ConfigMaps, block bool) error {
		object := maps.Object("owned", "first")
		object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name,
			UID: owner.UID, BlockOwnerDeletion: &block}}
		return suite.ErrorOf(maps.Update(ctx, object, metav1.UpdateOptions{DryRun: suite.DryRun.DryRun}))
	}
	beside.Eventually(ctx, func() error { return refer(finalizer, true) }).
		Should(gomega.Succeed(), "while the server learns of the roles")
	forbidden := func(err error, why string) {
		beside.Expect(err).To(suite.BeStatus(suite.Forbidden))
		beside.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(why)))
	}
	forbidden(refer(writer, false), "cannot set an ownerRef on a resource you can't delete")
	beside.Expect(refer(remover, false)).To(gomega.Succeed(), "who may delete it can give it owners")
	forbidden(refer(remover, true), "cannot set blockOwnerDeletion if an ownerReference refers to a resource you "+
		"can't set finalizers on")
	_, err := writer.Update(ctx, writer.Object("owned", "second"), metav1.UpdateOptions{DryRun: suite.DryRun.DryRun})
	beside.Expect(err).NotTo(gomega.HaveOccurred(), "a change that leaves the owners alone")
}

func externalIPsCanBeDenied(ctx context.Context, t *suite.T) {
	beside := strict(ctx, t)
	services := beside.Kube.CoreV1().Services(beside.Namespace(ctx))
	service := suite.Service("a")
	t.Must(suite.ErrorOf(services.Create(ctx, service, suite.DryRun)), "create a Service")
	service.Spec.ExternalIPs = []string{"192.0.2.1"}
	_, err := services.Create(ctx, service, suite.DryRun)
	t.Expect(err).To(suite.BeStatus(suite.Forbidden))
	t.Expect(err).To(gomega.MatchError(`services "a" is forbidden: Use of external IPs is denied by admission control`))
}

func pluginCanBeDisabled(ctx context.Context, t *suite.T) {
	beside := strict(ctx, t)
	namespaces := beside.Kube.CoreV1().Namespaces()
	suite.Create(ctx, t, beside.Kube.CoreV1().ConfigMaps(beside.Name).Create,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	created, err := beside.Kube.CoreV1().Pods(beside.Name).Create(ctx, pod(), suite.DryRun)
	t.Must(err, "create a pod in that namespace")
	t.Expect(created.Spec.Tolerations).To(gomega.BeEmpty(), "DefaultTolerationSeconds is off")
	t.Expect(created.Spec.Priority).To(gomega.HaveValue(gomega.BeZero()), "Priority is on, as by default")
	_, err = namespaces.Get(ctx, beside.Name, metav1.GetOptions{})
	t.Expect(err).NotTo(gomega.HaveOccurred(), "NamespaceAutoProvision is on")
}
