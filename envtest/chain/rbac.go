package chain

import (
	"fmt"
	_ "unsafe" // for go:linkname

	genericapiserver "k8s.io/apiserver/pkg/server"
	clientset "k8s.io/client-go/kubernetes"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// ensureRBACPolicy is upstream's own reconciliation of the bootstrap roles.
//
//go:linkname ensureRBACPolicy k8s.io/kubernetes/pkg/registry/rbac/rest.ensureRBACPolicy
func ensureRBACPolicy(policy *rbacrest.PolicyData, client clientset.Interface) (done bool, err error)

// bootstrapRoles is the rbac/bootstrap-roles hook without the whole second that
// upstream's waits before its first try. What it does is upstream's.
func bootstrapRoles(hook genericapiserver.PostStartHookContext) error {
	policy := &rbacrest.PolicyData{
		ClusterRoles:               append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...),
		ClusterRoleBindings:        append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...),
		Roles:                      bootstrappolicy.NamespaceRoles(),
		RoleBindings:               bootstrappolicy.NamespaceRoleBindings(),
		ClusterRolesToAggregate:    bootstrappolicy.ClusterRolesToAggregate(),
		ClusterRoleBindingsToSplit: bootstrappolicy.ClusterRoleBindingsToSplit(),
	}
	client, err := clientset.NewForConfig(hook.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("unable to initialize roles: %w", err)
	}
	if err := retryHook(hook, func() (bool, error) { return ensureRBACPolicy(policy, client) }); err != nil {
		return fmt.Errorf("unable to initialize roles: %w", err)
	}
	return nil
}
