package bootstrap

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
)

// noList is a client that lists no cluster roles and bindings: upstream's
// reconciliation lists them only to see whether the store answers.
type noList struct{ clientset.Interface }

// RbacV1 implements clientset.Interface.
func (c noList) RbacV1() rbacv1client.RbacV1Interface {
	return noListRBAC{c.Interface.RbacV1()}
}

type noListRBAC struct{ rbacv1client.RbacV1Interface }

// ClusterRoles implements rbacv1client.ClusterRolesGetter.
func (c noListRBAC) ClusterRoles() rbacv1client.ClusterRoleInterface {
	return noListClusterRoles{c.RbacV1Interface.ClusterRoles()}
}

// ClusterRoleBindings implements rbacv1client.ClusterRoleBindingsGetter.
func (c noListRBAC) ClusterRoleBindings() rbacv1client.ClusterRoleBindingInterface {
	return noListClusterRoleBindings{c.RbacV1Interface.ClusterRoleBindings()}
}

type noListClusterRoles struct {
	rbacv1client.ClusterRoleInterface
}

// List implements rbacv1client.ClusterRoleInterface.
func (noListClusterRoles) List(context.Context, metav1.ListOptions) (*rbacv1.ClusterRoleList, error) {
	return &rbacv1.ClusterRoleList{}, nil
}

type noListClusterRoleBindings struct {
	rbacv1client.ClusterRoleBindingInterface
}

// List implements rbacv1client.ClusterRoleBindingInterface.
func (noListClusterRoleBindings) List(context.Context, metav1.ListOptions) (*rbacv1.ClusterRoleBindingList, error) {
	return &rbacv1.ClusterRoleBindingList{}, nil
}
