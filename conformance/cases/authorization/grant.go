package authorization

import (
	"context"

	"github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

// attributes are of what is to be done in the API.
type attributes = authorizationv1.ResourceAttributes

// rule is one for resources of the core group.
func rule(resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}
}

// named limits a rule to objects of these names.
func named(rule rbacv1.PolicyRule, names ...string) rbacv1.PolicyRule {
	rule.ResourceNames = names
	return rule
}

func userSubject(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

func clusterRole(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

func role(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
}

// makeRole creates a Role in the case's namespace.
func makeRole(ctx context.Context, t *suite.T, name string, rules ...rbacv1.PolicyRule) {
	roles := t.Kube.RbacV1().Roles(t.Namespace(ctx))
	_, err := roles.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	t.Must(err, "create Role %s", name)
	t.CleanupObjects(func(ctx context.Context) error { return roles.Delete(ctx, name, metav1.DeleteOptions{}) })
}

// makeClusterRole creates a ClusterRole.
func makeClusterRole(ctx context.Context, t *suite.T, name string, rules ...rbacv1.PolicyRule) {
	roles := t.Kube.RbacV1().ClusterRoles()
	_, err := roles.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	t.Must(err, "create ClusterRole %s", name)
	t.CleanupObjects(func(ctx context.Context) error { return roles.Delete(ctx, name, metav1.DeleteOptions{}) })
}

// bind creates a RoleBinding in the case's namespace.
func bind(ctx context.Context, t *suite.T, name string, to rbacv1.RoleRef, subjects ...rbacv1.Subject) {
	bindings := t.Kube.RbacV1().RoleBindings(t.Namespace(ctx))
	_, err := bindings.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: to, Subjects: subjects}, metav1.CreateOptions{})
	t.Must(err, "create RoleBinding %s", name)
	t.CleanupObjects(func(ctx context.Context) error { return bindings.Delete(ctx, name, metav1.DeleteOptions{}) })
}

// bindEverywhere creates a ClusterRoleBinding.
func bindEverywhere(ctx context.Context, t *suite.T, name string, to rbacv1.RoleRef, subjects ...rbacv1.Subject) {
	bindings := t.Kube.RbacV1().ClusterRoleBindings()
	_, err := bindings.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: to, Subjects: subjects}, metav1.CreateOptions{})
	t.Must(err, "create ClusterRoleBinding %s", name)
	t.CleanupObjects(func(ctx context.Context) error { return bindings.Delete(ctx, name, metav1.DeleteOptions{}) })
}

// grant gives a user rules in the case's namespace, by a Role and a RoleBinding of one name.
func grant(ctx context.Context, t *suite.T, name, user string, rules ...rbacv1.PolicyRule) {
	makeRole(ctx, t, name, rules...)
	bind(ctx, t, name, role(name), userSubject(user))
}

// review asks what a user may do.
func review(ctx context.Context, t *suite.T, spec authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	answer, err := t.Kube.AuthorizationV1().SubjectAccessReviews().
		Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	t.Must(err, "review the access of %q in %q", spec.User, spec.Groups)
	return answer.Status
}

// may reports whether a user may do something.
func may(ctx context.Context, t *suite.T, user string, what attributes) bool {
	return review(ctx, t, authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &what}).Allowed
}

// untilMay waits until a grant has reached the authorizer, which learns of it by a watch.
func untilMay(ctx context.Context, t *suite.T, user string, what attributes) {
	t.Eventually(ctx, func() bool { return may(ctx, t, user, what) }).Should(gomega.BeTrue(),
		"%s may not %s %s/%s in %q", user, what.Verb, what.Group, what.Resource, what.Namespace)
}

// access is a question and its answer.
type access struct {
	user string
	what attributes
	want bool
}

// expectAccess asserts the answers to reviews.
func expectAccess(ctx context.Context, t *suite.T, questions ...access) {
	for _, q := range questions {
		t.Expect(may(ctx, t, q.user, q.what)).To(gomega.Equal(q.want), "may %s %s: %+v", q.user, q.what.Verb, q.what)
	}
}

// reviewNode reports whether a node may do something.
func reviewNode(ctx context.Context, t *suite.T, user string, what attributes) bool {
	return review(ctx, t, authorizationv1.SubjectAccessReviewSpec{User: user, Groups: []string{"system:nodes", "system:authenticated"}, ResourceAttributes: &what}).Allowed
}
