package admission

import (
	"context"

	"github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var namespaceCases = []suite.Case{
	{ID: "S9/system-namespaces-stay", Level: suite.Core, Failure: true, Test: systemNamespacesStay,
		Source: "k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go, Admit; " +
			"k8s.io/kubernetes/pkg/kubeapiserver/options",
		Promise: "The namespaces default, kube-system and kube-public can't be deleted: 403."},
	{ID: "S9/terminating-namespace-takes-nothing-new", Level: suite.Core, Failure: true,
		Test:   terminatingNamespaceTakesNothingNew,
		Source: "k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go, Admit",
		Promise: "In a namespace that is being deleted nothing is created, which is answered 403 with a cause of its " +
			"own, while what is there can be changed and deleted."},
	{ID: "S9/limit-range-defaults-and-limits", Level: suite.Core, Failure: true, Test: limitRangeDefaultsAndLimits,
		Source: "k8s.io/kubernetes/plugin/pkg/admission/limitranger/admission.go, PodMutateLimitFunc and " +
			"PodValidateLimitFunc",
		Promise: "Containers get a LimitRange's defaults for what they leave out, and pods whose containers are " +
			"below its minimum or above its maximum are refused with 403 that names both."},
	{ID: "S9/quota-refuses-what-exceeds-it", Level: suite.Core, Failure: true, Test: quotaRefusesWhatExceedsIt,
		Source: "k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go, CheckRequest",
		Promise: "What is made in a namespace is counted in its ResourceQuota's status, dry runs are not, and what " +
			"would exceed it is refused with 403 that says what is used."},
	{ID: "S9/default-class-is-set-on-claims", Level: suite.Core, Needs: suite.Launch, Test: defaultClassIsSetOnClaims,
		Source: "k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault/admission.go; " +
			"k8s.io/kubernetes/plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go",
		Promise: "A volume claim without a storage class gets the default class, one that says that it wants none " +
			"gets none, and both are protected by a finalizer."},
}

func systemNamespacesStay(ctx context.Context, t *suite.T) {
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic} {
		err := t.Kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{DryRun: suite.DryRun.DryRun})
		t.Expect(err).To(suite.BeStatus(suite.Forbidden), "delete %s", name)
		t.Expect(err).To(gomega.MatchError(gomega.HaveSuffix("this namespace may not be deleted")))
	}
}

func terminatingNamespaceTakesNothingNew(ctx context.Context, t *suite.T) {
	maps := t.ConfigMaps(ctx)
	held := maps.Object("held", "first")
	held.Finalizers = []string{"conformance.snowglobe.test/hold"} // which holds the namespace too
	maps.MustCreate(ctx, held)
	t.Must(t.Kube.CoreV1().Namespaces().Delete(ctx, maps.Namespace, metav1.DeleteOptions{}), "delete the namespace")
	_, err := maps.Create(ctx, maps.Object("new", "first"), metav1.CreateOptions{})
	t.Expect(err).To(suite.BeStatus(suite.Forbidden))
	message := "unable to create new content in namespace " + maps.Namespace + " because it is being terminated"
	t.Expect(err).To(gomega.MatchError(`configmaps "new" is forbidden: ` + message))
	t.Expect(suite.StatusOf(err).Details.Causes).To(gomega.ContainElement(metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: "namespace " + maps.Namespace +
			" is being terminated", Field: "metadata.namespace"}))
	changed, err := maps.Merge(ctx, "held", `{"data":{"content":"second"}}`)
	t.Must(err, "change what is there")
	t.Expect(changed.Data).To(gomega.HaveKeyWithValue("content", "second"))
	t.Must(suite.ErrorOf(maps.Merge(ctx, "held", `{"metadata":{"finalizers":null}}`)), "let go of what is there")
	t.Expect(maps.Delete(ctx, "held", metav1.DeleteOptions{})).
		To(gomega.Or(gomega.Succeed(), suite.BeStatus(suite.NotFound)))
}

func cpu(text string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text)}
}

func limitRangeDefaultsAndLimits(ctx context.Context, t *suite.T) {
	p := newPods(ctx, t)
	ranges := t.Kube.CoreV1().LimitRanges(p.namespace)
	suite.Create(ctx, t, ranges.Create, &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "cpu"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, DefaultRequest: cpu("200m"), Default: cpu("400m"), Min: cpu("100m"),
			Max: cpu("1"),
		}}},
	})

	requests := func(text string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Requests = cpu(text) }
	}
	t.Eventually(ctx, func() string {
		return p.created(ctx).Spec.Containers[0].Resources.Requests.Cpu().String()
	}).Should(gomega.Equal("200m"), "the default request")
	t.Expect(p.created(ctx).Spec.Containers[0].Resources.Limits.Cpu().String()).
		To(gomega.Equal("400m"), "the default limit")
	own := p.created(ctx, requests("300m")).Spec.Containers[0].Resources
	t.Expect(own.Requests.Cpu().String()).To(gomega.Equal("300m"), "what the pod says itself")
	p.forbidden(ctx, "minimum cpu usage per Container is 100m, but request is 50m", requests("50m"))
	p.forbidden(ctx, "maximum cpu usage per Container is 1, but limit is 2", requests("300m"), func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Limits = cpu("2")
	})
}

func quotaRefusesWhatExceedsIt(ctx context.Context, t *suite.T) {
	namespace := t.Namespace(ctx)
	quotas, leases := t.Kube.CoreV1().ResourceQuotas(namespace), t.Kube.CoordinationV1().Leases(namespace)
	const counted, none = corev1.ResourceName("count/leases.coordination.k8s.io"), corev1.ResourceName("count/secrets")
	hard := corev1.ResourceList{counted: resource.MustParse("2"), none: resource.MustParse("0")}
	quota := suite.Create(ctx, t, quotas.Create, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}})
	// This is what the quota controller does, which need not run here.
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard,
		Used: corev1.ResourceList{counted: resource.MustParse("0"), none: resource.MustParse("0")}}
	if _, err := quotas.UpdateStatus(ctx, quota, metav1.UpdateOptions{}); err != nil {
		t.Expect(err).To(suite.BeStatus(suite.Conflict), "it runs")
	}
	create := func(name string, opts metav1.CreateOptions) error {
		return suite.ErrorOf(leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, opts))
	}
	// A server does not count what a quota limits before it knows the quota. It knows the quota, with
	// its status, once it refuses a Secret, of which the quota allows none.
	t.Eventually(ctx, func() error {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
		return suite.ErrorOf(t.Kube.CoreV1().Secrets(namespace).Create(ctx, secret, suite.DryRun))
	}).Should(gomega.MatchError(gomega.ContainSubstring("exceeded quota: few, requested: count/secrets=1")),
		"while the server learns of the quota")
	t.Must(create("dry", suite.DryRun), "create a Lease as a dry run")
	for _, name := range []string{"a", "b"} {
		t.Must(create(name, metav1.CreateOptions{}), "create Lease %s", name)
	}
	for _, opts := range []metav1.CreateOptions{{}, suite.DryRun} {
		err := create("c", opts)
		t.Expect(err).To(suite.BeStatus(suite.Forbidden))
		t.Expect(err).To(gomega.MatchError(`leases.coordination.k8s.io "c" is forbidden: exceeded quota: few, ` +
			`requested: ` + string(counted) + `=1, used: ` + string(counted) + `=2, limited: ` + string(counted) +
			`=2`))
	}
	quota = suite.Get(ctx, t, quotas.Get, "few")
	used := quota.Status.Used[counted]
	t.Expect(used.String()).To(gomega.Equal("2"), "what the quota counts")
}

func defaultClassIsSetOnClaims(ctx context.Context, t *suite.T) {
	_, beside := t.Shared(ctx, "admission")
	classes, claims := beside.Kube.StorageV1().StorageClasses(), beside.Kube.CoreV1().
		PersistentVolumeClaims(beside.Namespace(ctx))
	for name, isDefault := range map[string]string{"plain": "false", "usual": "true"} {
		suite.Create(ctx, t, classes.Create, &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: name,
				Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": isDefault}},
			Provisioner: "none.example.com"})
	}
	claim := func(class *string) *corev1.PersistentVolumeClaim {
		made, err := claims.Create(ctx, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "claim"},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				},
			},
		}, suite.DryRun)
		t.Must(err, "create a claim")
		return made
	}
	t.Eventually(ctx, func() *string { return claim(nil).Spec.StorageClassName }).
		Should(gomega.HaveValue(gomega.Equal("usual")))
	for _, said := range []string{"", "plain"} {
		made := claim(&said)
		t.Expect(made.Spec.StorageClassName).To(gomega.HaveValue(gomega.Equal(said)))
		t.Expect(made.Finalizers).To(gomega.Equal([]string{"kubernetes.io/pvc-protection"}))
	}
}
