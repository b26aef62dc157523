package envtest_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"snowglobe.test/envtest"
)

var (
	settledTimes = flag.Int("settled-times", 1, "how often TestSettledWrites tries each kind")
	settledAll   = flag.Bool("settled-all", false, "TestSettledWrites also tries a policy, known within a second")
	settledOf    = flag.String("settled-of", "", "the kubeconfig of another server that TestSettledWrites asks")
)

// TestSettledWrites creates what a server itself must know of, and then at once what needs it: on a
// new control plane, and after a Reset.
func TestSettledWrites(t *testing.T) {
	t.Parallel()
	if *settledOf != "" {
		config, err := clientcmd.BuildConfigFromFlags("", *settledOf)
		require.NoError(t, err)
		trySettled(t, config)
		return
	}
	cp := envtest.Start(t)
	trySettled(t, cp.Config())
	require.NoError(t, cp.Reset(t.Context()))
	t.Run("reset", func(t *testing.T) { trySettled(t, cp.Config()) })
}

func trySettled(t *testing.T, config *rest.Config) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	probes := maps.Clone(settledProbes)
	if *settledAll {
		probes["policy"] = policyKnown
	}
	for name, probe := range probes {
		t.Run(name, func(t *testing.T) {
			p := &settledProbe{T: t, config: config, client: kubernetes.NewForConfigOrDie(config)}
			known := 0
			for i := range *settledTimes {
				p.name = fmt.Sprintf("%s-%d", name, i)
				p.namespace()
				if probe(p) {
					known++
				}
			}
			t.Logf("known at once: %d of %d", known, *settledTimes)
			assert.Equal(t, *settledTimes, known)
		})
	}
}

// settledProbe tries something in the namespace with its name.
type settledProbe struct {
	*testing.T
	config *rest.Config
	client *kubernetes.Clientset
	name   string
}

func (p *settledProbe) meta() metav1.ObjectMeta { return metav1.ObjectMeta{Name: p.name} }

func (p *settledProbe) namespace() {
	labels := map[string]string{"of": p.name}
	_, err := p.client.CoreV1().Namespaces().Create(p.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.name, Labels: labels}}, metav1.CreateOptions{})
	require.NoError(p, err)
	_, err = p.client.CoreV1().ServiceAccounts(p.name).Create(p.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(p, err)
}

// done fails the test if something could not be prepared.
func done[T any](p *settledProbe) func(T, error) {
	return func(_ T, err error) { require.NoError(p, err) }
}

func (p *settledProbe) pod(change func(*corev1.PodSpec)) (*corev1.Pod, error) {
	pod := &corev1.Pod{ObjectMeta: p.meta(), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	change(&pod.Spec)
	return p.client.CoreV1().Pods(p.name).Create(p.Context(), pod, metav1.CreateOptions{})
}

func (p *settledProbe) configMap() error {
	_, err := p.client.CoreV1().ConfigMaps(p.name).Create(p.Context(), &corev1.ConfigMap{ObjectMeta: p.meta()}, metav1.CreateOptions{})
	return err
}

// allowed reports whether the user with the probe's name may list ConfigMaps.
func (p *settledProbe) allowed() bool {
	as := rest.CopyConfig(p.config)
	as.Impersonate.UserName = p.name
	_, err := kubernetes.NewForConfigOrDie(as).CoreV1().ConfigMaps(p.name).List(p.Context(), metav1.ListOptions{})
	return err == nil
}

func (p *settledProbe) role(resource string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: p.meta(), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"list"}}}}
}

func (p *settledProbe) bind() {
	done[*rbacv1.RoleBinding](p)(p.client.RbacV1().RoleBindings(p.name).Create(p.Context(), &rbacv1.RoleBinding{
		ObjectMeta: p.meta(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: p.name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: p.name}},
	}, metav1.CreateOptions{}))
}

// settledProbes report whether the server knew what the probe has written.
var settledProbes = map[string]func(p *settledProbe) bool{
	"rolebinding": func(p *settledProbe) bool {
		done[*rbacv1.Role](p)(p.client.RbacV1().Roles(p.name).Create(p.Context(), p.role("configmaps"), metav1.CreateOptions{}))
		p.bind()
		return p.allowed()
	},
	"role": func(p *settledProbe) bool {
		done[*rbacv1.Role](p)(p.client.RbacV1().Roles(p.name).Create(p.Context(), p.role("secrets"), metav1.CreateOptions{}))
		p.bind()
		done[*rbacv1.Role](p)(p.client.RbacV1().Roles(p.name).Update(p.Context(), p.role("configmaps"), metav1.UpdateOptions{}))
		return p.allowed()
	},
	"priorityclass": func(p *settledProbe) bool {
		done[*schedulingv1.PriorityClass](p)(p.client.SchedulingV1().PriorityClasses().Create(p.Context(), &schedulingv1.PriorityClass{ObjectMeta: p.meta(), Value: 7}, metav1.CreateOptions{}))
		_, err := p.pod(func(spec *corev1.PodSpec) { spec.PriorityClassName = p.name })
		return err == nil
	},
	"limitrange": func(p *settledProbe) bool {
		limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		done[*corev1.LimitRange](p)(p.client.CoreV1().LimitRanges(p.name).Create(p.Context(), &corev1.LimitRange{
			ObjectMeta: p.meta(), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: limits}}},
		}, metav1.CreateOptions{}))
		pod, err := p.pod(func(*corev1.PodSpec) {})
		require.NoError(p, err)
		return len(pod.Spec.Containers[0].Resources.Limits) == 1
	},
	"serviceaccount": func(p *settledProbe) bool {
		done[*corev1.ServiceAccount](p)(p.client.CoreV1().ServiceAccounts(p.name).Create(p.Context(), &corev1.ServiceAccount{ObjectMeta: p.meta()}, metav1.CreateOptions{}))
		_, err := p.pod(func(spec *corev1.PodSpec) { spec.ServiceAccountName = p.name })
		return err == nil
	},
	"resourcequota": quotaKnown,
	"version":       versionKnown,
	"webhook":       webhookKnown,
}

func quotaKnown(p *settledProbe) bool {
	none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	quotas := p.client.CoreV1().ResourceQuotas(p.name)
	quota, err := quotas.Create(p.Context(), &corev1.ResourceQuota{
		ObjectMeta: p.meta(), Spec: corev1.ResourceQuotaSpec{Hard: none},
	}, metav1.CreateOptions{})
	require.NoError(p, err)
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // a controller's part
	done[*corev1.ResourceQuota](p)(quotas.UpdateStatus(p.Context(), quota, metav1.UpdateOptions{}))
	_, err = p.pod(func(*corev1.PodSpec) {})
	return apierrors.IsForbidden(err)
}

// selected is the probe's own namespace.
func (p *settledProbe) selected() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"of": p.name}}
}

func createConfigMaps() admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}
}

func policyKnown(p *settledProbe) bool {
	policies := p.client.AdmissionregistrationV1()
	done[*admissionv1.ValidatingAdmissionPolicy](p)(policies.ValidatingAdmissionPolicies().Create(p.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: p.meta(), Spec: admissionv1.ValidatingAdmissionPolicySpec{
			Validations: []admissionv1.Validation{{Expression: "false"}},
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: p.selected(), ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: createConfigMaps()}},
			},
		},
	}, metav1.CreateOptions{}))
	done[*admissionv1.ValidatingAdmissionPolicyBinding](p)(policies.ValidatingAdmissionPolicyBindings().Create(p.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: p.meta(), Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: p.name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}, metav1.CreateOptions{}))
	return p.configMap() != nil
}

func webhookKnown(p *settledProbe) bool {
	url, fail, none := "https://127.0.0.1:1/", admissionv1.Fail, admissionv1.SideEffectClassNone
	webhooks := p.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	done[*admissionv1.ValidatingWebhookConfiguration](p)(webhooks.Create(p.Context(), &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: p.meta(), Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "refuses.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &url}, FailurePolicy: &fail, SideEffects: &none,
			AdmissionReviewVersions: []string{"v1"}, NamespaceSelector: p.selected(), Rules: []admissionv1.RuleWithOperations{createConfigMaps()},
		}},
	}, metav1.CreateOptions{}))
	return p.configMap() != nil
}

func versionKnown(p *settledProbe) bool {
	schema1 := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	group := p.name + ".example.com"
	client := apiextensionsclient.NewForConfigOrDie(p.config).ApiextensionsV1().CustomResourceDefinitions()
	crd, err := client.Create(p.Context(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things." + group}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.ClusterScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true, Storage: true, Schema: schema1}, {Name: "v2", Schema: schema1},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(p, err)
	lists := func(version string) error {
		things := schema.GroupVersionResource{Group: group, Version: version, Resource: "things"}
		_, err := dynamic.NewForConfigOrDie(p.config).Resource(things).List(p.Context(), metav1.ListOptions{})
		return err
	}
	require.Eventually(p, func() bool { return lists("v1") == nil }, time.Minute, time.Millisecond)
	_, err = client.Patch(p.Context(), crd.Name, types.JSONPatchType, []byte(`[{"op": "replace", "path": "/spec/versions/1/served", "value": true}]`), metav1.PatchOptions{})
	require.NoError(p, err)
	return assert.NoError(p, lists("v2"))
}

// TestRestoreIsKnown uses what a snapshot has right after a Restore, and what it lacks after a Reset.
func TestRestoreIsKnown(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, cp *envtest.ControlPlane) {
		p := &settledProbe{T: t, config: cp.Config(), client: kubernetes.NewForConfigOrDie(cp.Config()), name: "bound"}
		p.namespace()
		done[*rbacv1.Role](p)(p.client.RbacV1().Roles(p.name).
			Create(p.Context(), p.role("configmaps"), metav1.CreateOptions{}))
		p.bind()
		bound, err := cp.Snapshot(t.Context())
		require.NoError(t, err)
		for range 10 {
			require.NoError(t, cp.Reset(t.Context()))
			assert.False(t, p.allowed(), "by a RoleBinding that is gone")
			require.NoError(t, cp.Restore(t.Context(), bound))
			assert.True(t, p.allowed(), "by a RoleBinding of the snapshot")
		}
	}
	t.Run("virtual", func(t *testing.T) { envtest.Simulate(t, test) })
	t.Run("real", func(t *testing.T) { test(t, envtest.Start(t)) })
}

// TestSettledDeletion has whoever watches Pods take the first of the two writes of a deletion some time
// before the second.
func TestSettledDeletion(t *testing.T) {
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		pods := kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().Pods("default")
		watcher, err := pods.Watch(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		defer watcher.Stop()
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		_, err = pods.Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
		deleted := make(chan error, 1)
		go func() { deleted <- pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}) }()
		var at []time.Time
		for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
			require.Equal(t, kind, (<-watcher.ResultChan()).Type)
			at = append(at, time.Now())
		}
		assert.GreaterOrEqual(t, at[2].Sub(at[1]), 5*time.Millisecond)
		assert.NoError(t, <-deleted)
	}, envtest.WithSettledWrites(true))
}

// TestSettledWritesHeld answers a write although a rule holds up its event.
func TestSettledWritesHeld(t *testing.T) {
	t.Parallel()
	cp := envtest.Start(t)
	_, err := cp.Faults().Inject("hold cache/configmaps optional")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = kubernetes.NewForConfigOrDie(cp.Config()).CoreV1().ConfigMaps("default").
		Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held"}}, metav1.CreateOptions{})
	assert.NoError(t, err)
}
