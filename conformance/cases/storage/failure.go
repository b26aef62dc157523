package storage

import (
	"context"
	"net/http"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var failureCases = suite.Launching([]suite.Case{
	{ID: "S5/undecodable-object-is-told", Failure: true, Since: "1.37", Test: undecodableObjectIsTold,
		Source: "KEP-3926; k8s.io/apiserver/pkg/storage/etcd3/corrupt_obj_deleter.go",
		Promise: "An object that can't be decoded fails its get, its list and its ordinary deletion with 500, the " +
			"list says which it is, and its neighbours are still read one by one."},
	{ID: "S5/unsafe-deletion-is-guarded", Failure: true, Since: "1.37", Test: unsafeDeletionIsGuarded,
		Source: "KEP-3926; k8s.io/apiserver/pkg/endpoints/handlers/delete.go, authorizeUnsafeDelete; " +
			"k8s.io/apiserver/pkg/registry/generic/registry/corrupt_obj_deleter.go",
		Promise: "ignoreStoreReadErrorWithClusterBreakingPotential deletes an object that can't be decoded, for who " +
			"may unsafe-delete-ignore-read-errors; never one that can be, nor a collection, nor in a dry run."},
	{ID: "S5/store-is-a-health-check", Failure: true, Test: storeIsAHealthCheck,
		Source: "k8s.io/apiserver/pkg/server/options/etcd.go, addEtcdHealthEndpoint; " +
			"k8s.io/apiserver/pkg/storage/storagebackend/factory/etcd3.go, newETCD3Check",
		Promise: "While the store does not answer, /livez/etcd and /readyz/etcd-readiness are 500, and both are 200 " +
			"again when it does."},
	{ID: "S5/lost-reply-is-an-error", Failure: true, Test: lostReplyIsAnError,
		Source: "k8s.io/apiserver/pkg/storage/etcd3/store.go, Create; " +
			"k8s.io/apiserver/pkg/registry/generic/registry/store.go, Create",
		Promise: "A create whose reply from the store is lost is answered with an error of the server, never with " +
			"success or AlreadyExists, and the object is there, once."},
})

// broken launches a control plane with a ControllerRevision "broken" that nothing can decode, and
// one, "whole", beside it.
func broken(ctx context.Context, t *suite.T) (*envtest.ControlPlane, *suite.T, string) {
	cp, other := withoutCache(ctx, t)
	namespace := other.Namespace(ctx)
	whole := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "whole"},
		Data: runtime.RawExtension{Raw: []byte(`{}`)}}
	suite.Create(ctx, t, other.Kube.AppsV1().ControllerRevisions(namespace).Create, whole)
	client, err := cp.Store().Client()
	t.Must(err, "reach the store")
	defer func() { _ = client.Close() }()
	key := brokenKey(namespace)
	t.Must(suite.ErrorOf(client.KV.Put(ctx, key, "this is no object")), "break what is stored at %s", key)
	t.Cleanup(func(ctx context.Context) error {
		client, err := cp.Store().Client()
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		return suite.ErrorOf(client.KV.Delete(ctx, key))
	})
	return cp, other, "/apis/apps/v1/namespaces/" + namespace + "/controllerrevisions"
}

func brokenKey(namespace string) string {
	return "/registry/controllerrevisions/" + namespace + "/broken"
}

func undecodableObjectIsTold(ctx context.Context, t *suite.T) {
	cp, other, path := broken(ctx, t)
	other.Answered(ctx, path+"/broken", http.StatusInternalServerError)
	list := other.Get(ctx, path)
	status := t.ExpectStatus(list, suite.Unreadable)
	t.Expect(status.Details).NotTo(gomega.BeNil(), "%s", list)
	key := brokenKey(other.Namespace(ctx))
	t.Expect(status.Details.Causes).To(gomega.ConsistOf(gomega.HaveField("Field", key)), "%s", list)
	other.AnsweredTo(ctx, suite.Request{Method: http.MethodDelete, Path: path + "/broken"},
		http.StatusInternalServerError)
	entry(ctx, t, cp, key)
	other.Answered(ctx, path+"/whole", http.StatusOK)
}

// unsafely deletes a path with the option, and others.
func unsafely(ctx context.Context, t *suite.T, path string, others ...string) suite.Answer {
	options := map[string]any{"kind": "DeleteOptions", "apiVersion": "v1",
		"ignoreStoreReadErrorWithClusterBreakingPotential": true}
	for _, other := range others {
		options[other] = map[string]any{"dryRun": []string{metav1.DryRunAll}, "gracePeriodSeconds": 0}[other]
	}
	return t.Ask(ctx, suite.Request{Method: http.MethodDelete, Path: path, Body: options})
}

func unsafeDeletionIsGuarded(ctx context.Context, t *suite.T) {
	cp, other, path := broken(ctx, t)
	namespace := other.Namespace(ctx)
	janitor := allowed(ctx, other, "delete", "deletecollection")
	refused := unsafely(ctx, janitor, path+"/broken")
	t.Expect(t.ExpectStatus(refused, suite.Forbidden).Message).To(
		gomega.ContainSubstring("unsafe-delete-ignore-read-errors"), "%s", refused)
	sound := unsafely(ctx, other, path+"/whole")
	t.ExpectStatus(sound, suite.Conflict)
	other.Answered(ctx, path+"/whole", http.StatusOK)
	t.ExpectStatus(unsafely(ctx, other, path), suite.Invalid)
	graceful := unsafely(ctx, other, path+"/broken", "gracePeriodSeconds")
	t.ExpectStatus(graceful, suite.Invalid)
	t.ExpectCode(unsafely(ctx, other, path+"/broken", "dryRun"), http.StatusOK)
	entry(ctx, t, cp, brokenKey(namespace))

	surgeon := allowed(ctx, other, "delete", "unsafe-delete-ignore-read-errors")
	t.ExpectCode(unsafely(ctx, surgeon, path+"/broken"), http.StatusOK)
	other.Answered(ctx, path, http.StatusOK)
	missing := unsafely(ctx, surgeon, path+"/broken")
	t.ExpectStatus(missing, suite.NotFound)
}

// allowed is a user who may do that to ControllerRevisions of the case's namespace, once the
// authorizer knows.
func allowed(ctx context.Context, t *suite.T, verbs ...string) *suite.T {
	name := verbs[len(verbs)-1]
	t.Grant(ctx, name, name, suite.Rule("controllerrevisions.apps", verbs...))
	user := t.As(name)
	t.Eventually(ctx, func() int {
		path := "/apis/apps/v1/namespaces/" + t.Namespace(ctx) + "/controllerrevisions/none"
		return user.Ask(ctx, suite.Request{Method: http.MethodDelete, Path: path}).Code
	}).Should(gomega.Equal(http.StatusNotFound), "user %s may not delete yet", name)
	return user
}

func storeIsAHealthCheck(ctx context.Context, t *suite.T) {
	cp, other := t.Launch(ctx)
	codes := func() []int {
		return []int{other.Get(ctx, "/livez/etcd").Code, other.Get(ctx, "/readyz/etcd").Code,
			other.Get(ctx, "/readyz/etcd-readiness").Code}
	}
	t.Eventually(ctx, codes).Should(gomega.Equal([]int{200, 200, 200}))
	away := t.Inject(cp, "partition store")
	t.Eventually(ctx, codes).Should(gomega.Equal([]int{500, 500, 500}), "while the store is away")
	other.Answered(ctx, "/livez/ping", http.StatusOK)
	away.Remove()
	t.Eventually(ctx, codes).Should(gomega.Equal([]int{200, 200, 200}), "after the store has come back")
}

func lostReplyIsAnError(ctx context.Context, t *suite.T) {
	cp, other := t.Shared(ctx, "defaults")
	cms := other.ConfigMaps(ctx)
	rule := t.Inject(cp, "lose-reply store/put resource=configmaps name="+cms.Namespace+"/a with=unavailable times=1")
	defer rule.Remove()
	got := other.Ask(ctx, suite.Request{Method: http.MethodPost, Path: cms.Path(), Body: cms.Object("a", "first")})
	t.Expect(got.Code).To(gomega.BeNumerically(">=", http.StatusInternalServerError), "%s", got)
	t.Expect(cms.Read(ctx, "a").Data).To(gomega.HaveKeyWithValue("content", "first"))
	again := other.Ask(ctx, suite.Request{Method: http.MethodPost, Path: cms.Path(), Body: cms.Object("a", "second")})
	t.ExpectStatus(again, suite.AlreadyExists)
	t.Expect(suite.Names(cms.MustList(ctx, cms.Mine()))).To(gomega.Equal([]string{"a"}))
}
