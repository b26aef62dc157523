package suite

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rule is one for a resource, like "configmaps" or "roles.rbac.authorization.k8s.io".
func Rule(resource string, verbs ...string) rbacv1.PolicyRule {
	of := schema.ParseGroupResource(resource)
	return rbacv1.PolicyRule{APIGroups: []string{of.Group}, Resources: []string{of.Resource}, Verbs: verbs}
}

// User is a user as the subject of a binding.
func User(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

// RoleRef names a Role for a binding, and ClusterRoleRef a ClusterRole.
func RoleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
}

// ClusterRoleRef is described at RoleRef.
func ClusterRoleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// MakeRole creates a Role in the case's namespace.
func (t *T) MakeRole(ctx context.Context, name string, rules ...rbacv1.PolicyRule) {
	roles := t.Kube.RbacV1().Roles(t.Namespace(ctx))
	Create(ctx, t, roles.Create, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
}

// MakeClusterRole creates a ClusterRole.
func (t *T) MakeClusterRole(ctx context.Context, name string, rules ...rbacv1.PolicyRule) {
	roles := t.Kube.RbacV1().ClusterRoles()
	Create(ctx, t, roles.Create, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
}

// Bind creates a RoleBinding in the case's namespace.
func (t *T) Bind(ctx context.Context, name string, to rbacv1.RoleRef, subjects ...rbacv1.Subject) {
	meta, bindings := metav1.ObjectMeta{Name: name}, t.Kube.RbacV1().RoleBindings(t.Namespace(ctx))
	Create(ctx, t, bindings.Create, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: to, Subjects: subjects})
}

// BindEverywhere creates a ClusterRoleBinding.
func (t *T) BindEverywhere(ctx context.Context, name string, to rbacv1.RoleRef, subjects ...rbacv1.Subject) {
	meta, bindings := metav1.ObjectMeta{Name: name}, t.Kube.RbacV1().ClusterRoleBindings()
	Create(ctx, t, bindings.Create, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: to, Subjects: subjects})
}

// Grant gives a user rules in the case's namespace, by a Role and a RoleBinding of one name.
func (t *T) Grant(ctx context.Context, name, user string, rules ...rbacv1.PolicyRule) {
	t.MakeRole(ctx, name, rules...)
	t.Bind(ctx, name, RoleRef(name), User(user))
}
