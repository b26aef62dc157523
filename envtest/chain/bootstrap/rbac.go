package bootstrap

// Works around PolicyData.EnsureRBACPolicy (k8s.io/kubernetes/pkg/registry/rbac/
// rest, storage_rbac.go), which waits a second before it reconciles the bootstrap
// roles, by its unexported ensureRBACPolicy. The linker notices when that is gone,
// TestRoles when it does something else.

import (
	"context"
	"fmt"
	_ "unsafe" // for go:linkname

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	clientset "k8s.io/client-go/kubernetes"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// ensureRBACPolicy is upstream's own reconciliation of the bootstrap roles.
//
//go:linkname ensureRBACPolicy k8s.io/kubernetes/pkg/registry/rbac/rest.ensureRBACPolicy
func ensureRBACPolicy(policy *rbacrest.PolicyData, client clientset.Interface) (done bool, err error)

// roles is the hook rbac/bootstrap-roles.
func roles(hook genericapiserver.PostStartHookContext) error {
	client, err := clientset.NewForConfig(hook.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("unable to initialize roles: %w", err)
	}
	if err := retry(hook, func() (bool, error) { return ensureRoles(hook, client) }); err != nil {
		return fmt.Errorf("unable to initialize roles: %w", err)
	}
	return nil
}

// ensureRoles has upstream ensure its policy: it gets each of 140 objects, and creates those that are
// missing. Where there are none, they are all created first, so that upstream is left with the few
// in namespaces.
func ensureRoles(ctx context.Context, client clientset.Interface) (done bool, err error) {
	policy := rolePolicy()
	found, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{Limit: 1})
	if err == nil && len(found.Items) == 0 && createClusterRoles(ctx, client.RbacV1(), policy) == nil {
		policy = &rbacrest.PolicyData{Roles: policy.Roles, RoleBindings: policy.RoleBindings}
	}
	return ensureRBACPolicy(policy, client)
}

// createClusterRoles creates the cluster roles of a policy and their bindings, some at a time.
func createClusterRoles(ctx context.Context, client rbacv1client.RbacV1Interface, policy *rbacrest.PolicyData) error {
	var work errgroup.Group
	work.SetLimit(4)
	for _, role := range policy.ClusterRoles {
		work.Go(func() error {
			_, err := client.ClusterRoles().Create(ctx, &role, metav1.CreateOptions{})
			return err
		})
	}
	for _, binding := range policy.ClusterRoleBindings {
		work.Go(func() error {
			_, err := client.ClusterRoleBindings().Create(ctx, &binding, metav1.CreateOptions{})
			return err
		})
	}
	return work.Wait()
}

// rolePolicy is the policy of upstream's hook.
func rolePolicy() *rbacrest.PolicyData {
	return &rbacrest.PolicyData{
		ClusterRoles:               append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...),
		ClusterRoleBindings:        append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...),
		Roles:                      bootstrappolicy.NamespaceRoles(),
		RoleBindings:               bootstrappolicy.NamespaceRoleBindings(),
		ClusterRolesToAggregate:    bootstrappolicy.ClusterRolesToAggregate(),
		ClusterRoleBindingsToSplit: bootstrappolicy.ClusterRoleBindingsToSplit(),
	}
}
