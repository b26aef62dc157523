package authorization

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var grantCases = []suite.Case{
	{ID: "S8/no-role-beyond-ones-own-rights", Failure: true, Test: noRoleBeyondOnesOwnRights,
		Source: "k8s.io/kubernetes/pkg/registry/rbac/escalation_check.go, RoleEscalationAuthorized; " +
			"k8s.io/kubernetes/pkg/registry/rbac/validation/rule.go, ConfirmNoEscalation",
		Promise: "Whoever may create and update Roles can put into them only rights of their own, unless they have " +
			"the verb escalate; the 403 lists what they lack."},
	{ID: "S8/no-binding-beyond-ones-own-rights", Failure: true, Test: noBindingBeyondOnesOwnRights,
		Source: "k8s.io/kubernetes/pkg/registry/rbac/escalation_check.go, BindingAuthorized; " +
			"k8s.io/kubernetes/pkg/registry/rbac/rolebinding/policybased/storage.go",
		Promise: "Whoever may create RoleBindings can bind only roles whose rights they have, unless they have the " +
			"verb bind on the role."},
	{ID: "S8/aggregation-needs-all-rights", Failure: true, Test: aggregationNeedsAllRights,
		Source: "k8s.io/kubernetes/pkg/registry/rbac/clusterrole/policybased/storage.go, hasAggregationRule",
		Promise: "A ClusterRole that aggregates others can be created only by those who have all rights, and the " +
			"default roles admin, edit and view are such roles."},
	{ID: "S8/role-of-a-binding-is-immutable", Level: suite.Core, Failure: true, Test: roleOfABindingIsImmutable,
		Source:  "k8s.io/kubernetes/pkg/apis/rbac/validation/validation.go, ValidateRoleBindingUpdate",
		Promise: "The subjects of a binding can be changed, its roleRef can't: 422 on that field."},
}

// keeper is a user who may keep objects of RBAC in the case's namespace, and reads
// ConfigMaps.
func keeper(ctx context.Context, t *suite.T, resource string) (user string, as *suite.T) {
	user = t.Name + "-keeper"
	t.Grant(ctx, "keeper", user, suite.Rule("configmaps", "get", "list"),
		suite.Rule(resource+"."+rbacv1.GroupName, "create", "update"))
	untilMay(ctx, t, user, attributes{Verb: "create", Group: rbacv1.GroupName, Resource: resource,
		Namespace: t.Namespace(ctx)})
	return user, t.As(user)
}

// post creates an object of RBAC in the case's namespace.
func post(ctx context.Context, t *suite.T, resource string, object any) suite.Answer {
	path := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + t.Namespace(ctx) + "/" + resource
	return t.Ask(ctx, suite.Request{Method: "POST", Path: path, Body: object})
}

func noRoleBeyondOnesOwnRights(ctx context.Context, t *suite.T) {
	user, as := keeper(ctx, t, "roles")
	make := func(name string, rules ...rbacv1.PolicyRule) suite.Answer {
		return post(ctx, as, "roles", rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	}
	own, more := suite.Rule("configmaps", "list"), suite.Rule("secrets", "get", "list")
	got := make("own", own)
	t.Expect(got.Code).To(gomega.Equal(http.StatusCreated), "%s", got)
	status := t.ExpectStatus(make("more", own, more), suite.Forbidden)
	t.Expect(status.Message).
		To(gomega.Equal(fmt.Sprintf(`roles.rbac.authorization.k8s.io "more" is forbidden: user "%s" `+
			`(groups=["system:authenticated"]) `+
			"is attempting to grant RBAC permissions not currently held:\n"+
			`{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}`, user)))
	t.ExpectStatus(make("other-verb", suite.Rule("configmaps", "delete")), suite.Forbidden)
	got = as.Ask(ctx, suite.Request{Method: "PUT", Path: "/apis/rbac.authorization.k8s.io/v1/namespaces/" +
		t.Namespace(ctx) + "/roles/own",
		Body: rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "own"}, Rules: []rbacv1.PolicyRule{more}}})
	t.ExpectStatus(got, suite.Forbidden)

	t.Grant(ctx, "escalate", user, suite.Rule("roles."+rbacv1.GroupName, "escalate"))
	untilMay(ctx, t, user, attributes{Verb: "escalate", Group: rbacv1.GroupName, Resource: "roles",
		Namespace: t.Namespace(ctx)})
	t.ExpectCode(make("more", own, more), http.StatusCreated)
}

func noBindingBeyondOnesOwnRights(ctx context.Context, t *suite.T) {
	user, as := keeper(ctx, t, "rolebindings")
	t.MakeRole(ctx, "own", suite.Rule("configmaps", "get"))
	t.MakeRole(ctx, "more", suite.Rule("secrets", "get"))
	make := func(name, of string) suite.Answer {
		return post(ctx, as, "rolebindings", rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: suite.RoleRef(of),
			Subjects: []rbacv1.Subject{suite.User(user)}})
	}
	t.Eventually(ctx, func() int { return make("own", "own").Code }).Should(gomega.Equal(http.StatusCreated))
	t.Eventually(ctx, func() string {
		return t.ExpectStatus(make("more", "more"), suite.Forbidden).Message
	}).Should(gomega.And(
		gomega.HavePrefix(`rolebindings.rbac.authorization.k8s.io "more" is forbidden: user "%s"`, user),
		gomega.HaveSuffix("is attempting to grant RBAC permissions not currently held:\n"+
			`{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`)))
	t.ExpectStatus(make("none", "no-such-role"), suite.NotFound)

	t.Grant(ctx, "bind", user, named(suite.Rule("roles."+rbacv1.GroupName, "bind"), "more"))
	untilMay(ctx, t, user, attributes{Verb: "bind", Group: rbacv1.GroupName, Resource: "roles", Name: "more",
		Namespace: t.Namespace(ctx)})
	t.ExpectCode(make("more", "more"), http.StatusCreated)
}

func aggregationNeedsAllRights(ctx context.Context, t *suite.T) {
	user, name := t.Name+"-keeper", t.Name+"-keeper"
	for _, role := range []string{"admin", "edit", "view"} {
		t.Expect(t.Kube.RbacV1().ClusterRoles().Get(ctx, role, metav1.GetOptions{})).
			To(gomega.HaveField("AggregationRule.ClusterRoleSelectors",
				gomega.ContainElement(gomega.HaveField("MatchLabels",
					gomega.HaveKeyWithValue("rbac.authorization.k8s.io/aggregate-to-"+role, "true")))))
	}
	t.MakeClusterRole(ctx, name, suite.Rule("clusterroles."+rbacv1.GroupName, "create"))
	t.BindEverywhere(ctx, name, suite.ClusterRoleRef(name), suite.User(user))
	untilMay(ctx, t, user, attributes{Verb: "create", Group: rbacv1.GroupName, Resource: "clusterroles"})
	create := func(as *suite.T, aggregates *rbacv1.AggregationRule) suite.Answer {
		object := rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: t.Name + "-sum"}, AggregationRule: aggregates}
		return as.Ask(ctx, suite.Request{Method: "POST",
			Path: "/apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All", Body: object})
	}
	all := &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
		{MatchLabels: map[string]string{"case": t.Name}},
	}}
	got := create(t.As(user), nil)
	t.Expect(got.Code).To(gomega.Equal(http.StatusCreated), "without an aggregation: %s", got)
	status := t.ExpectStatus(create(t.As(user), all), suite.Forbidden)
	t.Expect(status.Message).To(gomega.HaveSuffix("must have cluster-admin privileges to use the aggregationRule"))
	got = create(t, all)
	t.Expect(got.Code).To(gomega.Equal(http.StatusCreated), "by an admin: %s", got)
}

func roleOfABindingIsImmutable(ctx context.Context, t *suite.T) {
	t.Bind(ctx, "bound", suite.RoleRef("one"), suite.User("jane"))
	bindings := t.Kube.RbacV1().RoleBindings(t.Namespace(ctx))
	binding := suite.Get(ctx, t, bindings.Get, "bound")
	binding.Subjects = []rbacv1.Subject{suite.User("joe")}
	binding = suite.Update(ctx, t, bindings.Update, binding)
	t.Expect(binding.Subjects).To(gomega.ConsistOf(suite.User("joe")))
	for _, other := range []rbacv1.RoleRef{suite.RoleRef("two"), suite.ClusterRoleRef("one")} {
		changed := binding.DeepCopy()
		changed.RoleRef = other
		_, err := bindings.Update(ctx, changed, metav1.UpdateOptions{})
		t.Expect(t.Causes(err)).To(gomega.Equal([]string{"roleRef"}))
	}
}
