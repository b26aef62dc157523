// Package informers has the cases about what a server knows through its own informers, as its
// clients can tell. Rules hold, break and expire the informers' lists and watches.
package informers

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

const (
	roles  = "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go, over listers of the shared informers"
	resume = "k8s.io/client-go/tools/cache/reflector.go"
)

// Cases are the cases of this area.
var Cases = []suite.Case{
	{ID: "S17/unsynced-informer-keeps-readyz-red", Failure: true, Needs: suite.Launch, Test: unsyncedInformer,
		Source: "k8s.io/apiserver/pkg/server/healthz/healthz.go, NewInformerSyncHealthz; " +
			"k8s.io/apiserver/pkg/server/config.go",
		Promise: "While one informer of the server has not synced, /readyz is 500 because of informer-sync, /livez " +
			"is 200, and reads are served."},
	{ID: "S17/permissions-follow-writes", Level: suite.Core, Test: permissionsFollowWrites,
		Source: roles,
		Promise: "A permission is there soon after its Role and RoleBinding are created, grows with the Role, and is " +
			"gone soon after the binding."},
	{ID: "S17/lagging-informer-is-a-stale-view", Failure: true, Needs: suite.Launch, Test: laggingInformer,
		Source: roles,
		Promise: "The authorizer decides by what its informers have: until they have a new binding its user is " +
			"refused, although the binding can be read."},
	{ID: "S17/lost-watch-is-resumed", Failure: true, Needs: suite.Launch, Test: lostWatch,
		Source: resume + ", watch: it goes on from the last resourceVersion",
		Promise: "An informer whose watch ends, or can't be begun at first, goes on and misses nothing: a binding " +
			"made meanwhile counts."},
	{ID: "S17/expired-watch-is-a-new-list", Failure: true, Needs: suite.Launch, Test: expiredWatch,
		Source: resume + ", ListAndWatch: an expired resourceVersion means a new list",
		Promise: "An informer that is told 410 for its watch lists again: a binding deleted meanwhile counts no " +
			"more, and a new one does."},
	{ID: "S17/failed-list-is-tried-again", Failure: true, Needs: suite.Launch, Test: failedList,
		Source:  resume + ", defaultBackoffInit",
		Promise: "A server whose informer's first lists fail tries again by itself, and becomes ready."},
	{ID: "S17/quota-is-known-to-admission", Level: suite.Core, Failure: true, Test: quotaIsKnown,
		Source: "k8s.io/apiserver/pkg/admission/plugin/resourcequota/resource_access.go, GetQuotas, over the lister " +
			"of quotas",
		Promise: "A ResourceQuota that is used up refuses further objects of its namespace with 403 soon after it is " +
			"there, and no longer once it is deleted."},
	{ID: "S17/limits-follow-writes", Level: suite.Core, Test: limitsFollowWrites,
		Source: "k8s.io/kubernetes/plugin/pkg/admission/limitranger/admission.go, GetLimitRanges, over the lister " +
			"of LimitRanges",
		Promise: "The defaults of a LimitRange are set in Pods soon after it is created, the new ones soon after it " +
			"is changed, and none soon after it is deleted."},
}

const webhookInformer = "informer/validatingwebhookconfigurations.admissionregistration.k8s.io verb=sync"

func unsyncedInformer(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx)
	server := cp.Servers()[0]
	maps := t.ConfigMaps(ctx)
	maps.Make(ctx, "one")
	// On a store where nothing has to be created, the server starts without that informer.
	t.Must(server.Stop(ctx), "stop the server")
	sync := t.Gate(cp, webhookInformer)
	ready := t.Restarting(ctx, server)
	t.Until(ctx, "/readyz/poststarthook/rbac/bootstrap-roles", http.StatusOK)
	got := t.Answered(ctx, "/readyz?verbose", http.StatusInternalServerError)
	t.Expect(string(got.Body)).To(gomega.ContainSubstring("[-]informer-sync failed: reason withheld\n"), "%s", got)
	t.Answered(ctx, "/readyz/informer-sync", http.StatusInternalServerError)
	t.Answered(ctx, "/livez/ping", http.StatusOK)
	t.Expect(maps.Read(ctx, "one").Data).To(gomega.HaveKeyWithValue("content", "first"))
	sync.Remove()
	ready()
	t.Answered(ctx, "/readyz", http.StatusOK)
}

// reader is a user who may read the ConfigMaps of the case's namespace once that is granted.
type reader struct {
	*suite.T
	path string
}

// grant creates a Role and its binding to a user that only this case knows.
func grant(ctx context.Context, t *suite.T, verbs ...string) reader {
	t.Grant(ctx, "reader", t.Name, suite.Rule("configmaps", verbs...))
	return reader{T: t.As(t.Name), path: "/api/v1/namespaces/" + t.Namespace(ctx) + "/configmaps"}
}

func unbind(ctx context.Context, t *suite.T) {
	err := t.Kube.RbacV1().RoleBindings(t.Namespace(ctx)).Delete(ctx, "reader", metav1.DeleteOptions{})
	t.Must(err, "delete RoleBinding reader")
}

// soon waits until the user's list of ConfigMaps is answered with that code.
func (r reader) soon(ctx context.Context, code int) {
	r.Until(ctx, r.path, code, "GET %s by %s", r.path, r.Name)
}

func permissionsFollowWrites(ctx context.Context, t *suite.T) {
	user := grant(ctx, t, "get")
	got := user.path + "/none"
	user.Until(ctx, got, http.StatusNotFound, "get is not granted")
	user.Answered(ctx, user.path, http.StatusForbidden)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules: []rbacv1.PolicyRule{suite.Rule("configmaps", "get", "list")}}
	suite.Update(ctx, t, t.Kube.RbacV1().Roles(t.Namespace(ctx)).Update, role)
	user.soon(ctx, http.StatusOK)
	unbind(ctx, t)
	user.soon(ctx, http.StatusForbidden)
	user.Answered(ctx, got, http.StatusForbidden)
}

func laggingInformer(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx)
	frozen := t.Gate(cp, "watch/rolebindings.rbac.authorization.k8s.io caller=system:apiserver")
	user := grant(ctx, t, "list")
	t.Must(suite.ErrorOf(frozen.Await(ctx, 1)), "the informer's event is not held")
	suite.Get(ctx, t, t.Kube.RbacV1().RoleBindings(t.Namespace(ctx)).Get, "reader")
	user.Answered(ctx, user.path, http.StatusForbidden)
	frozen.Open()
	user.soon(ctx, http.StatusOK)
}

const bindingInformer = "informer/rolebindings.rbac.authorization.k8s.io verb=watch"

func lostWatch(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx)
	// The next event is the last that the informer gets, and it gets on only at the third try.
	t.Inject(cp, "fail watch/rolebindings.rbac.authorization.k8s.io caller=system:apiserver with=eof times=1")
	t.Inject(cp, "fail "+bindingInformer+" with=503 times=2")
	user := grant(ctx, t, "list")
	user.soon(ctx, http.StatusOK)
	unbind(ctx, t)
	user.soon(ctx, http.StatusForbidden)
}

func expiredWatch(ctx context.Context, beside *suite.T) {
	cp, t := beside.Launch(ctx)
	user := grant(ctx, t, "list")
	user.soon(ctx, http.StatusOK)
	// The event of the deletion is not told, and nothing after it.
	t.Inject(cp, "fail watch/rolebindings.rbac.authorization.k8s.io caller=system:apiserver with=410 times=1")
	unbind(ctx, t)
	user.soon(ctx, http.StatusForbidden)
	t.Bind(ctx, "reader", suite.RoleRef("reader"), suite.User(t.Name))
	user.soon(ctx, http.StatusOK)
}

func failedList(ctx context.Context, beside *suite.T) {
	_, t := beside.Launch(ctx, envtest.WithFaults("fail informer/limitranges verb=list with=500 times=2"))
	t.Until(ctx, "/readyz/informer-sync", http.StatusOK)
	t.Answered(ctx, "/readyz", http.StatusOK)
	t.ConfigMaps(ctx).Make(ctx, "one")
}

func quotaIsKnown(ctx context.Context, t *suite.T) {
	maps := t.ConfigMaps(ctx)
	quotas := t.Kube.CoreV1().ResourceQuotas(maps.Namespace)
	none := corev1.ResourceList{"count/secrets": resource.MustParse("0")}
	quota := suite.Create(ctx, t, quotas.Create, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
	})
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // as the controller would
	suite.Update(ctx, t, quotas.UpdateStatus, quota)
	probe := func() error {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
		return suite.ErrorOf(t.Kube.CoreV1().Secrets(maps.Namespace).Create(ctx, secret, suite.DryRun))
	}
	t.Eventually(ctx, probe).Should(gomega.And(suite.BeStatus(suite.Forbidden),
		gomega.MatchError(gomega.ContainSubstring("exceeded quota: none, requested: count/secrets=1, used: "+
			"count/secrets=0, limited: count/secrets=0"))))
	maps.Make(ctx, "not-counted")
	t.Must(quotas.Delete(ctx, "none", metav1.DeleteOptions{}), "delete ResourceQuota none")
	t.Eventually(ctx, probe).Should(gomega.Succeed())
}

func limitsFollowWrites(ctx context.Context, t *suite.T) {
	namespace := t.Namespace(ctx)
	limits := t.Kube.CoreV1().LimitRanges(namespace)
	with := func(memory string) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "memory"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type:    corev1.LimitTypeContainer,
				Default: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)},
			}}}}
	}
	defaulted := func() string {
		pod := suite.Pod("probe", "one")
		pod.Spec.AutomountServiceAccountToken = new(bool)
		pod, err := t.Kube.CoreV1().Pods(namespace).Create(ctx, pod, suite.DryRun)
		if err != nil {
			return err.Error()
		}
		return pod.Spec.Containers[0].Resources.Limits.Memory().String()
	}
	suite.Create(ctx, t, limits.Create, with("7Mi"))
	t.Eventually(ctx, defaulted).Should(gomega.Equal("7Mi"))
	suite.Update(ctx, t, limits.Update, with("9Mi"))
	t.Eventually(ctx, defaulted).Should(gomega.Equal("9Mi"))
	t.Must(limits.Delete(ctx, "memory", metav1.DeleteOptions{}), "delete LimitRange memory")
	t.Eventually(ctx, defaulted).Should(gomega.Equal("0"))
}
