package authorization

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var ruleCases = []suite.Case{
	{ID: "S8/denied-by-default", Failure: true, Test: deniedByDefault,
		Source: "k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go, forbiddenMessage",
		Promise: "Whoever has no role is answered 403 with a message that names the user, the verb, the resource " +
			"with its subresource and group, and the namespace or the cluster scope; or the path."},
	{ID: "S8/role-allows-in-its-namespace", Level: suite.Core, Test: roleAllowsInItsNamespace,
		Source: "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go, RuleAllows",
		Promise: "A Role allows its subjects its verbs on its resources in its namespace and nothing else, until its " +
			"binding is deleted."},
	{ID: "S8/cluster-role-reaches-as-far-as-its-binding", Level: suite.Core, Test: clusterRoleReachesAsFarAsItsBinding,
		Source: "k8s.io/kubernetes/pkg/registry/rbac/validation/rule.go, VisitRulesFor",
		Promise: "A ClusterRole holds in one namespace by a RoleBinding, and in all of them and for the cluster's " +
			"own resources by a ClusterRoleBinding."},
	{ID: "S8/subjects-are-users-groups-and-accounts", Level: suite.Core, Test: subjectsAreUsersGroupsAndAccounts,
		Source: "k8s.io/kubernetes/pkg/registry/rbac/validation/rule.go, appliesToUser",
		Promise: "A binding is for its users, its groups and its service accounts by namespace, and for nobody who " +
			"only has the name of another kind of subject."},
	{ID: "S8/resource-names-limit-a-rule", Level: suite.Core, Test: resourceNamesLimitARule,
		Source: "k8s.io/kubernetes/pkg/apis/rbac/v1/evaluation_helpers.go, ResourceNameMatches; " +
			"k8s.io/apiserver/pkg/endpoints/request/requestinfo.go: metadata.name is the name",
		Promise: "A rule with resourceNames allows these objects alone: no others, no list but one that selects " +
			"metadata.name, and no creation."},
	{ID: "S8/rule-matches-verb-group-and-subresource", Level: suite.Core, Test: ruleMatchesVerbGroupAndSubresource,
		Source: "k8s.io/kubernetes/pkg/apis/rbac/v1/evaluation_helpers.go",
		Promise: "A rule matches by verb, group and resource, each of which may be *; a subresource needs a rule of " +
			"its own, or one for */subresource."},
	{ID: "S8/paths-need-non-resource-rules", Level: suite.Core, Test: pathsNeedNonResourceRules,
		Source: "k8s.io/kubernetes/pkg/apis/rbac/v1/evaluation_helpers.go, NonResourceURLMatches",
		Promise: "A path outside of resources is allowed by a cluster role that names it, or a prefix of it with * " +
			"at the end."},
	{ID: "S8/binding-without-its-role-grants-nothing", Failure: true, Test: bindingWithoutItsRoleGrantsNothing,
		Source: "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go, Authorize and authorizingVisitor",
		Promise: "A binding to a role that does not exist grants nothing, the 403 says which role is missing, and " +
			"the user's other bindings go on."},
}

func deniedByDefault(ctx context.Context, t *suite.T) {
	ns, user := t.Namespace(ctx), t.Name+"-nobody"
	path := "/api/v1/namespaces/" + ns + "/"
	in := fmt.Sprintf(` in the namespace "%s"`, ns)
	nobody := t.As(user)
	for _, asked := range []struct{ method, path, object, cannot string }{
		{"GET", path + "configmaps", `configmaps`, `list resource "configmaps" in API group ""` + in},
		{"GET", path + "configmaps?watch=1", `configmaps`, `watch resource "configmaps" in API group ""` + in},
		{"GET", path + "configmaps/a", `configmaps "a"`, `get resource "configmaps" in API group ""` + in},
		{"POST", path + "secrets", `secrets`, `create resource "secrets" in API group ""` + in},
		{"DELETE", path + "pods", `pods`, `deletecollection resource "pods" in API group ""` + in},
		{"GET", path + "pods/a/log", `pods "a"`, `get resource "pods/log" in API group ""` + in},
		{"PUT", "/apis/apps/v1/namespaces/" + ns + "/deployments/a/scale", `deployments.apps "a"`,
			`update resource "deployments/scale" in API group "apps"` + in},
		{"PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/a", `clusterroles.rbac.authorization.k8s.io "a"`,
			`patch resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope`},
		{"DELETE", "/api/v1/nodes/a", `nodes "a"`, `delete resource "nodes" in API group "" at the cluster scope`},
	} {
		got := nobody.Ask(ctx, suite.Request{Method: asked.method, Path: asked.path})
		status := t.ExpectStatus(got, suite.Forbidden)
		t.Expect(status.Message).
			To(gomega.Equal(fmt.Sprintf(`%s is forbidden: User "%s" cannot %s`, asked.object, user, asked.cannot)))
		t.Expect(got.Header.Get("X-Content-Type-Options")).To(gomega.Equal("nosniff"))
	}
	status := t.ExpectStatus(nobody.Get(ctx, "/s8<path>"), suite.Forbidden)
	t.Expect(status.Message).
		To(gomega.Equal(fmt.Sprintf(`forbidden: User "%s" cannot get path "/s8&lt;path&gt;"`, user)))
	status = t.ExpectStatus(nobody.Get(ctx, path+"configmaps/a"), suite.Forbidden)
	t.Expect(status.Details).To(gomega.HaveValue(gomega.Equal(metav1.StatusDetails{Kind: "configmaps", Name: "a"})))
}

func roleAllowsInItsNamespace(ctx context.Context, t *suite.T) {
	maps, user := t.ConfigMaps(ctx), t.Name+"-jane"
	t.Grant(ctx, "reader", user, suite.Rule("configmaps", "get", "list"))
	untilMay(ctx, t, user, attributes{Verb: "list", Resource: "configmaps", Namespace: maps.Namespace})
	maps.Make(ctx, "a")
	jane, path := t.As(user), maps.Path()
	jane.Answered(ctx, path, http.StatusOK)
	jane.Answered(ctx, path+"/a", http.StatusOK)
	jane.Answered(ctx, path+"?watch=1&timeoutSeconds=1", http.StatusForbidden)
	t.Expect(jane.Ask(ctx, suite.Request{Method: "DELETE", Path: path + "/a"}).Code).
		To(gomega.Equal(http.StatusForbidden))
	jane.Answered(ctx, "/api/v1/namespaces/"+maps.Namespace+"/secrets", http.StatusForbidden)
	jane.Answered(ctx, "/api/v1/namespaces/"+metav1.NamespaceDefault+"/configmaps", http.StatusForbidden)
	jane.Answered(ctx, "/api/v1/configmaps", http.StatusForbidden)
	t.As(user+"t").Answered(ctx, path, http.StatusForbidden)

	t.Must(t.Kube.RbacV1().RoleBindings(maps.Namespace).Delete(ctx, "reader", metav1.DeleteOptions{}),
		"delete the binding")
	jane.Until(ctx, path, http.StatusForbidden, "the binding is deleted")
}

func clusterRoleReachesAsFarAsItsBinding(ctx context.Context, t *suite.T) {
	ns := t.Namespace(ctx)
	near, far, name := t.Name+"-near", t.Name+"-far", t.Name+"-reader"
	t.MakeClusterRole(ctx, name, suite.Rule("configmaps", "list"), suite.Rule("nodes", "list"))
	t.Bind(ctx, name, suite.ClusterRoleRef(name), suite.User(near))
	t.BindEverywhere(ctx, name, suite.ClusterRoleRef(name), suite.User(far))
	here := attributes{Verb: "list", Resource: "configmaps", Namespace: ns}
	untilMay(ctx, t, near, here)
	untilMay(ctx, t, far, here)
	t.As(near).Answered(ctx, "/api/v1/namespaces/"+ns+"/configmaps", http.StatusOK)
	for _, path := range []string{"/api/v1/namespaces/default/configmaps", "/api/v1/configmaps", "/api/v1/nodes"} {
		t.As(near).Answered(ctx, path, http.StatusForbidden)
		t.As(far).Answered(ctx, path, http.StatusOK)
	}
}

func subjectsAreUsersGroupsAndAccounts(ctx context.Context, t *suite.T) {
	ns, name := t.Namespace(ctx), t.Name+"-name"
	group := rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "other", Name: name}
	here := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: name}
	t.MakeRole(ctx, "reader", suite.Rule("configmaps", "get"), suite.Rule("secrets", "get"), suite.Rule("pods", "get"),
		suite.Rule("services", "get"))
	who := map[string]authorizationv1.SubjectAccessReviewSpec{
		"user":          {User: name},
		"group":         {User: "someone", Groups: []string{"others", name}},
		"account":       {User: "system:serviceaccount:other:" + name},
		"other account": {User: "system:serviceaccount:" + ns + ":" + name},
	}
	for kind, subject := range map[string]rbacv1.Subject{"user": suite.User(name), "group": group, "account": account,
		"other account": here} {
		t.Bind(ctx, "bound", suite.RoleRef("reader"), subject)
		for other, spec := range who {
			spec.ResourceAttributes = &attributes{Verb: "get", Resource: "pods", Namespace: ns}
			t.Eventually(ctx, func() bool { return review(ctx, t, spec).Allowed }).Should(gomega.Equal(other == kind),
				"the binding is for the %s; is the %s allowed?", kind, other)
		}
		t.Must(t.Kube.RbacV1().RoleBindings(ns).Delete(ctx, "bound", metav1.DeleteOptions{}), "delete the binding")
	}
}

func resourceNamesLimitARule(ctx context.Context, t *suite.T) {
	maps, user := t.ConfigMaps(ctx), t.Name+"-jane"
	t.Grant(ctx, "one", user, named(suite.Rule("configmaps", "get", "list", "watch", "create", "delete",
		"deletecollection"), "a", "z"))
	untilMay(ctx, t, user, attributes{Verb: "get", Resource: "configmaps", Name: "z", Namespace: maps.Namespace})
	maps.Make(ctx, "a", "b")
	jane := t.As(user)
	jane.Answered(ctx, maps.Path()+"/a", http.StatusOK)
	jane.Answered(ctx, maps.Path()+"/b", http.StatusForbidden)
	jane.Answered(ctx, maps.Path(), http.StatusForbidden)
	list := suite.GetJSON[corev1.ConfigMapList](ctx, jane, maps.Path()+"?fieldSelector=metadata.name%3Da")
	t.Expect(suite.Names(&list)).To(gomega.Equal([]string{"a"}))
	jane.Answered(ctx, maps.Path()+"?fieldSelector=metadata.name%3Db", http.StatusForbidden)
	jane.Answered(ctx, maps.Path()+"?fieldSelector=metadata.name!%3Da", http.StatusForbidden)
	_, err := jane.Kube.CoreV1().ConfigMaps(maps.Namespace).Create(ctx, maps.Object("z", "new"), metav1.CreateOptions{})
	t.Expect(err).To(suite.BeStatus(suite.Forbidden), "a name in the body does not count")
}

func ruleMatchesVerbGroupAndSubresource(ctx context.Context, t *suite.T) {
	ns, user := t.Namespace(ctx), t.Name+"-jane"
	everything := []string{"*"}
	t.Grant(ctx, "rules", user,
		suite.Rule("pods", "get"), suite.Rule("services/status", "get"), suite.Rule("*/scale", "update"),
		suite.Rule("secrets", "*"),
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: everything, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: everything, Resources: []string{"jobs"}, Verbs: []string{"watch"}},
	)
	may := func(verb, group, resource, subresource string, want bool) access {
		return access{user, attributes{Verb: verb, Group: group, Resource: resource, Subresource: subresource,
			Namespace: ns}, want}
	}
	untilMay(ctx, t, user, may("watch", "batch", "jobs", "", true).what)
	expectAccess(ctx, t,
		may("get", "", "pods", "", true), may("get", "", "pods", "log", false), may("list", "", "pods", "", false),
		may("get", "other", "pods", "", false),
		may("get", "", "services", "status", true), may("get", "", "services", "", false),
		may("get", "", "pods", "status", false),
		may("update", "", "anything", "scale", true), may("update", "", "anything", "status", false),
		may("update", "", "anything", "", false),
		may("whatever", "", "secrets", "", true), may("get", "", "secrets", "status", false),
		may("list", "apps", "deployments", "", true), may("list", "apps", "deployments", "scale", true),
		may("get", "apps", "deployments", "", false), may("list", "batch", "deployments", "", false),
		may("watch", "any", "jobs", "", true), may("watch", "any", "cronjobs", "", false),
	)
}

func pathsNeedNonResourceRules(ctx context.Context, t *suite.T) {
	user, name := t.Name+"-jane", t.Name+"-paths"
	jane := t.As(user)
	jane.Answered(ctx, "/s8/one", http.StatusForbidden)
	t.MakeClusterRole(ctx, name, rbacv1.PolicyRule{NonResourceURLs: []string{"/s8/one", "/s8/all/*"},
		Verbs: []string{"get"}})
	t.BindEverywhere(ctx, name, suite.ClusterRoleRef(name), suite.User(user))
	// Nothing is there: 404 is what the allowed get.
	jane.Until(ctx, "/s8/one", http.StatusNotFound, "the path is allowed")
	for path, code := range map[string]int{"/s8/all/": 404, "/s8/all/of/it": 404, "/s8/all": 403, "/s8/one/more": 403,
		"/s8/ones": 403, "/s8": 403} {
		jane.Answered(ctx, path, code)
	}
	t.Expect(jane.Ask(ctx, suite.Request{Method: "POST", Path: "/s8/one"}).Code).
		To(gomega.Equal(http.StatusForbidden), "only get is allowed")
	path := authorizationv1.NonResourceAttributes{Path: "/s8/one", Verb: "get"}
	status := review(ctx, t, authorizationv1.SubjectAccessReviewSpec{User: user, NonResourceAttributes: &path})
	t.Expect(status.Reason).
		To(gomega.Equal(fmt.Sprintf(`RBAC: allowed by ClusterRoleBinding "%[1]s" of ClusterRole "%[1]s" to User `+
			`"%[2]s"`, name, user)))
}

func bindingWithoutItsRoleGrantsNothing(ctx context.Context, t *suite.T) {
	maps, user := t.ConfigMaps(ctx), t.Name+"-jane"
	t.Bind(ctx, "broken", suite.RoleRef("no-such-role"), suite.User(user))
	jane := t.As(user)
	missing := fmt.Sprintf(`configmaps is forbidden: User "%s" cannot list resource "configmaps" in API group "" in `+
		`the namespace "%s": `+
		`rbac: RBAC: role.rbac.authorization.k8s.io "no-such-role" not found`, user, maps.Namespace)
	t.Eventually(ctx, func() string {
		return t.ExpectStatus(jane.Get(ctx, maps.Path()), suite.Forbidden).Message
	}).Should(gomega.Equal(missing))
	t.Grant(ctx, "whole", user, suite.Rule("configmaps", "list"))
	jane.Until(ctx, maps.Path(), http.StatusOK, "another binding allows it")
}
