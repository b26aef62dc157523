package admission

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var podCases = []suite.Case{
	{ID: "S9/pod-security-is-enforced", Level: suite.Core, Failure: true, Test: podSecurityIsEnforced,
		Source: "KEP-2579; k8s.io/pod-security-admission/admission/admission.go, EvaluatePod and ValidateNamespace",
		Promise: "A pod that violates the level its namespace enforces is refused with 403 that names the level and " +
			"the fields; a Deployment of such pods is not; an unknown level is refused with 422."},
	{ID: "S9/pod-security-warns", Level: suite.Core, Test: podSecurityWarns,
		Source: "KEP-2579; k8s.io/pod-security-admission/admission/admission.go, EvaluatePod",
		Promise: "A pod or a Deployment that violates the level its namespace warns of is made, with a Warning " +
			"header that says what it would violate."},
	{ID: "S9/priority-class-is-resolved", Level: suite.Core, Failure: true, Test: priorityClassIsResolved,
		Source: "k8s.io/kubernetes/plugin/pkg/admission/priority/admission.go, admitPod",
		Promise: "A pod gets the value and the preemption policy of its priority class; an unknown class, or a pod " +
			"that claims another value, is refused with 403."},
	{ID: "S9/tolerations-are-defaulted", Level: suite.Core, Test: tolerationsAreDefaulted,
		Source: "k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds/admission.go",
		Promise: "A pod tolerates nodes that are not ready or unreachable for 300 seconds, unless it says itself " +
			"what it tolerates of them."},
	{ID: "S9/runtime-class-sets-overhead", Level: suite.Core, Failure: true, Test: runtimeClassSetsOverhead,
		Source: "k8s.io/kubernetes/plugin/pkg/admission/runtimeclass/admission.go",
		Promise: "A pod gets the overhead and the node selector of its RuntimeClass; an unknown class, another " +
			"overhead or a contradicting selector is refused with 403."},
	{ID: "S9/new-node-is-tainted", Level: suite.Core, Test: newNodeIsTainted,
		Source:  "k8s.io/kubernetes/plugin/pkg/admission/nodetaint/admission.go",
		Promise: "A new node is tainted as not ready, once, besides the taints that it brings."},
	{ID: "S9/service-account-is-defaulted", Failure: true, Needs: suite.Launch, Test: serviceAccountIsDefaulted,
		Source: "k8s.io/kubernetes/plugin/pkg/admission/serviceaccount/admission.go",
		Promise: "A pod runs as the service account default and gets its token mounted, unless it or the account " +
			"says otherwise; an account that is not there is refused with 403."},
}

// pods makes pods in the case's namespace, as dry runs.
type pods struct {
	*suite.T
	namespace string
}

// newPods also makes the service account that pods need: the controller that makes it may not run.
func newPods(ctx context.Context, t *suite.T) *pods {
	p := &pods{t, t.Namespace(ctx)}
	p.account(ctx, "default")
	return p
}

// account makes a service account, unless it is there.
func (p *pods) account(ctx context.Context, name string, change ...func(*corev1.ServiceAccount)) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, f := range change {
		f(account)
	}
	accounts := p.Kube.CoreV1().ServiceAccounts(p.namespace)
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		p.Must(err, "create service account %s", name)
	}
}

func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	object := suite.Pod("pod", "c")
	for _, f := range change {
		f(object)
	}
	return object
}

func (p *pods) create(ctx context.Context, change ...func(*corev1.Pod)) (*corev1.Pod, error) {
	return p.Kube.CoreV1().Pods(p.namespace).Create(ctx, pod(change...), suite.DryRun)
}

// created returns a pod as the server would make it.
func (p *pods) created(ctx context.Context, change ...func(*corev1.Pod)) *corev1.Pod {
	got, err := p.create(ctx, change...)
	p.Must(err, "create a pod")
	return got
}

// forbidden asserts that a pod is refused for a reason.
func (p *pods) forbidden(ctx context.Context, why string, change ...func(*corev1.Pod)) {
	_, err := p.create(ctx, change...)
	p.Expect(err).To(suite.BeStatus(suite.Forbidden))
	p.Expect(err).To(gomega.MatchError(gomega.And(gomega.HavePrefix(`pods "pod" is forbidden: `),
		gomega.ContainSubstring(why))))
}

// label sets labels of the case's namespace, and waits until the server heeds them.
func (p *pods) label(ctx context.Context, labels map[string]string, heeded func() bool) {
	p.Must(p.labels(ctx, labels), "label the namespace")
	p.Eventually(ctx, heeded).Should(gomega.BeTrue(), "labels %v have no effect", labels)
}

func (p *pods) labels(ctx context.Context, labels map[string]string) error {
	namespaces := p.Kube.CoreV1().Namespaces()
	namespace := suite.Get(ctx, p.T, namespaces.Get, p.namespace)
	for name, value := range labels {
		namespace.Labels["pod-security.kubernetes.io/"+name] = value
	}
	return suite.ErrorOf(namespaces.Update(ctx, namespace, metav1.UpdateOptions{}))
}

func privileged(pod *corev1.Pod) {
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
}

// deployment has the pods' template.
func (p *pods) deployment(change ...func(*corev1.Pod)) *appsv1.Deployment {
	labels := map[string]string{"app": "a"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "deployment"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod(change...).Spec},
		},
	}
}

const violation = `privileged (container "c" must not set securityContext.privileged=true)`

func podSecurityIsEnforced(ctx context.Context, t *suite.T) {
	p := newPods(ctx, t)
	p.created(ctx, privileged)
	p.label(ctx, map[string]string{"enforce": "baseline"}, func() bool {
		_, err := p.create(ctx, privileged)
		return err != nil
	})
	p.forbidden(ctx, `violates PodSecurity "baseline:latest": `+violation, privileged)
	p.created(ctx)
	_, err := t.Kube.AppsV1().Deployments(p.namespace).Create(ctx, p.deployment(privileged), suite.DryRun)
	t.Expect(err).NotTo(gomega.HaveOccurred(), "a Deployment is not a pod")

	p.label(ctx, map[string]string{"enforce-version": "v1.20"}, func() bool {
		_, err := p.create(ctx, privileged)
		return suite.StatusOf(err).Message == `pods "pod" is forbidden: violates PodSecurity "baseline:v1.20": `+
			violation
	})
	t.Expect(t.Causes(p.labels(ctx, map[string]string{"enforce": "strict"}))).To(gomega.Equal(
		[]string{"metadata.labels[pod-security.kubernetes.io/enforce]"}))
}

func podSecurityWarns(ctx context.Context, t *suite.T) {
	p := newPods(ctx, t)
	post := func(path string, object any) suite.Answer {
		return t.Ask(ctx, suite.Request{Method: http.MethodPost, Path: path + "/namespaces/" + p.namespace + "/" +
			kindPath(object) + "?dryRun=All", Body: object})
	}
	p.label(ctx, map[string]string{"warn": "baseline"},
		func() bool { return post("/api/v1", pod(privileged)).Header.Get("Warning") != "" })
	want := `299 - "would violate PodSecurity \"baseline:latest\": ` +
		`privileged (container \"c\" must not set securityContext.privileged=true)"`
	for path, object := range map[string]any{"/api/v1": pod(privileged), "/apis/apps/v1": p.deployment(privileged)} {
		got := t.ExpectCode(post(path, object), http.StatusCreated)
		t.Expect(got.Header.Values("Warning")).To(gomega.Equal([]string{want}), "%s", got)
	}
	t.Expect(post("/api/v1", pod()).Header.Values("Warning")).To(gomega.BeEmpty(), "nothing to warn of")
}

// kindPath is the resource of an object.
func kindPath(object any) string {
	if _, ok := object.(*corev1.Pod); ok {
		return "pods"
	}
	return "deployments"
}

func priorityClassIsResolved(ctx context.Context, t *suite.T) {
	p := newPods(ctx, t)
	classes := t.Kube.SchedulingV1().PriorityClasses()
	suite.Create(ctx, t, classes.Create, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: t.Name}, Value: 1234, PreemptionPolicy: new(corev1.PreemptNever)})
	of := func(class string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.PriorityClassName = class }
	}
	t.Eventually(ctx, func() error { _, err := p.create(ctx, of(t.Name)); return err }).
		Should(gomega.Succeed(), "while the server learns of the class")
	got := p.created(ctx, of(t.Name))
	t.Expect(got.Spec.Priority).To(gomega.HaveValue(gomega.BeEquivalentTo(1234)))
	t.Expect(got.Spec.PreemptionPolicy).To(gomega.HaveValue(gomega.Equal(corev1.PreemptNever)))
	p.forbidden(ctx, "no PriorityClass with name "+t.Name+"-x was found", of(t.Name+"-x"))
	p.forbidden(ctx, "the integer value of priority (7) must not be provided in pod spec; priority admission "+
		"controller computed 1234", of(t.Name),
		func(pod *corev1.Pod) { pod.Spec.Priority = new(int32(7)) })
	p.forbidden(ctx, "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided", of(t.Name),
		func(pod *corev1.Pod) { pod.Spec.PreemptionPolicy = new(corev1.PreemptLowerPriority) })
}

func tolerationsAreDefaulted(ctx context.Context, t *suite.T) {
	p := newPods(ctx, t)
	seconds := func(key string, n int64) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			TolerationSeconds: &n}
	}
	notReady, unreachable := seconds(corev1.TaintNodeNotReady, 300), seconds(corev1.TaintNodeUnreachable, 300)
	t.Expect(p.created(ctx).Spec.Tolerations).To(gomega.Equal([]corev1.Toleration{notReady, unreachable}))
	own := seconds(corev1.TaintNodeNotReady, 5)
	t.Expect(p.created(ctx, func(pod *corev1.Pod) { pod.Spec.Tolerations = []corev1.Toleration{own} }).
		Spec.Tolerations).To(
		gomega.Equal([]corev1.Toleration{own, unreachable}))
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}
	t.Expect(p.created(ctx, func(pod *corev1.Pod) { pod.Spec.Tolerations = []corev1.Toleration{all} }).
		Spec.Tolerations).To(
		gomega.Equal([]corev1.Toleration{all}))
}

func runtimeClassSetsOverhead(ctx context.Context, t *suite.T) {
	p := newPods(ctx, t)
	classes := t.Kube.NodeV1().RuntimeClasses()
	suite.Create(ctx, t, classes.Create, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: t.Name}, Handler: "sandbox",
		Overhead:   &nodev1.Overhead{PodFixed: cpu("250m")},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"kind": "sandbox"}}})
	of := func(class string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.RuntimeClassName = &class
			pod.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		}
	}
	got := p.created(ctx, of(t.Name))
	t.Expect(got.Spec.Overhead.Cpu().String()).To(gomega.Equal("250m"))
	t.Expect(got.Spec.NodeSelector).To(gomega.Equal(map[string]string{"disk": "ssd", "kind": "sandbox"}))
	p.forbidden(ctx, `pod rejected: RuntimeClass "`+t.Name+`-x" not found`, of(t.Name+"-x"))
	p.forbidden(ctx, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead", of(t.Name),
		func(pod *corev1.Pod) { pod.Spec.Overhead = cpu("1") })
	p.forbidden(ctx, "conflict: runtimeClass.scheduling.nodeSelector[kind] = sandbox; "+
		"pod.spec.nodeSelector[kind] = bare", of(t.Name),
		func(pod *corev1.Pod) { pod.Spec.NodeSelector["kind"] = "bare" })
}

func newNodeIsTainted(ctx context.Context, t *suite.T) {
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	own := corev1.Taint{Key: "own.example.com/taint", Value: "x", Effect: corev1.TaintEffectNoExecute}
	for _, brought := range [][]corev1.Taint{nil, {own}, {notReady}} {
		node, err := t.Kube.CoreV1().Nodes().Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: t.Name}, Spec: corev1.NodeSpec{Taints: brought}}, suite.DryRun)
		t.Must(err, "create a node")
		want := []corev1.Taint{notReady}
		if len(brought) > 0 && brought[0] == own {
			want = []corev1.Taint{own, notReady}
		}
		t.Expect(node.Spec.Taints).To(gomega.ConsistOf(want), "a node that brings %v", brought)
	}
}

func serviceAccountIsDefaulted(ctx context.Context, t *suite.T) {
	_, beside := t.Shared(ctx, "service-accounts", envtest.WithFlags("--enable-admission-plugins=ServiceAccount"))
	p := newPods(ctx, beside)
	p.account(ctx, "puller", func(account *corev1.ServiceAccount) {
		account.AutomountServiceAccountToken = new(false)
		account.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	})
	as := func(account string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.ServiceAccountName = account }
	}
	got := p.created(ctx)
	p.Expect(got.Spec.ServiceAccountName).To(gomega.Equal("default"))
	p.Expect(got.Spec.Volumes).To(gomega.HaveLen(1), "the token's volume")
	p.Expect(got.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken).NotTo(gomega.BeNil(), "a bound token")
	p.Expect(got.Spec.Containers[0].VolumeMounts).To(gomega.Equal([]corev1.VolumeMount{{
		Name: got.Spec.Volumes[0].Name, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}))

	got = p.created(ctx, as("puller"))
	p.Expect(got.Spec.Volumes).To(gomega.BeEmpty(), "the account wants no token mounted")
	p.Expect(got.Spec.ImagePullSecrets).To(gomega.Equal([]corev1.LocalObjectReference{{Name: "registry"}}))
	got = p.created(ctx, as("puller"), func(pod *corev1.Pod) { pod.Spec.AutomountServiceAccountToken = new(true) })
	p.Expect(got.Spec.Volumes).To(gomega.HaveLen(1), "the pod's word counts for more")
	got = p.created(ctx, func(pod *corev1.Pod) { pod.Spec.AutomountServiceAccountToken = new(false) })
	p.Expect(got.Spec.Volumes).To(gomega.BeEmpty(), "the pod wants no token mounted")
	p.forbidden(ctx, "error looking up service account "+p.namespace+`/nobody: serviceaccount "nobody" not found`,
		as("nobody"))
}
