package chain

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
)

// unlisted is a client that lists no cluster roles and bindings, to one who
// lists them only to see whether there is an answer.
type unlisted struct{ clientset.Interface }

// RbacV1 implements clientset.Interface.
func (u unlisted) RbacV1() rbacv1client.RbacV1Interface {
	return unlistedRBAC{u.Interface.RbacV1()}
}

type unlistedRBAC struct{ rbacv1client.RbacV1Interface }

// ClusterRoles implements rbacv1client.ClusterRolesGetter.
func (u unlistedRBAC) ClusterRoles() rbacv1client.ClusterRoleInterface {
	return unlistedClusterRoles{u.RbacV1Interface.ClusterRoles()}
}

// ClusterRoleBindings implements rbacv1client.ClusterRoleBindingsGetter.
func (u unlistedRBAC) ClusterRoleBindings() rbacv1client.ClusterRoleBindingInterface {
	return unlistedClusterRoleBindings{u.RbacV1Interface.ClusterRoleBindings()}
}

type unlistedClusterRoles struct {
	rbacv1client.ClusterRoleInterface
}

// List implements rbacv1client.ClusterRoleInterface.
func (unlistedClusterRoles) List(context.Context, metav1.ListOptions) (*rbacv1.ClusterRoleList, error) {
	return &rbacv1.ClusterRoleList{}, nil
}

type unlistedClusterRoleBindings struct {
	rbacv1client.ClusterRoleBindingInterface
}

// List implements rbacv1client.ClusterRoleBindingInterface.
func (unlistedClusterRoleBindings) List(context.Context, metav1.ListOptions) (*rbacv1.ClusterRoleBindingList, error) {
	return &rbacv1.ClusterRoleBindingList{}, nil
}
