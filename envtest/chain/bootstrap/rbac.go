package bootstrap

// Works around PolicyData.EnsureRBACPolicy (k8s.io/kubernetes/pkg/registry/rbac/
// rest, storage_rbac.go), which waits a second before it reconciles the bootstrap
// roles, by its unexported ensureRBACPolicy. The linker notices when that is gone,
// TestRoles when it does something else.

import (
	"fmt"
	"maps"
	"slices"
	_ "unsafe" // for go:linkname

	rbacv1 "k8s.io/api/rbac/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	clientset "k8s.io/client-go/kubernetes"
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
	if err := retry(hook, func() (bool, error) { return ensureRoles(client) }); err != nil {
		return fmt.Errorf("unable to initialize roles: %w", err)
	}
	return nil
}

// ensureRoles has upstream ensure its policy in parts of one map entry at most, as
// maps have no order. Only with the first part it looks whether the store answers.
func ensureRoles(client clientset.Interface) (done bool, err error) {
	all := true
	for i, part := range rolePolicy() {
		if i == 1 {
			client = noList{client}
		}
		done, err := ensureRBACPolicy(part, client)
		if err != nil || i == 0 && !done {
			return false, err
		}
		all = all && done
	}
	return all, nil
}

// rolePolicy is upstream's policy, in parts.
func rolePolicy() []*rbacrest.PolicyData {
	var parts []*rbacrest.PolicyData
	aggregate := bootstrappolicy.ClusterRolesToAggregate()
	for _, from := range slices.Sorted(maps.Keys(aggregate)) {
		parts = append(parts, &rbacrest.PolicyData{ClusterRolesToAggregate: map[string]string{from: aggregate[from]}})
	}
	parts = append(parts, &rbacrest.PolicyData{
		ClusterRoles:               append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...),
		ClusterRoleBindings:        append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...),
		ClusterRoleBindingsToSplit: bootstrappolicy.ClusterRoleBindingsToSplit(),
	})
	roles := bootstrappolicy.NamespaceRoles()
	for _, namespace := range slices.Sorted(maps.Keys(roles)) {
		parts = append(parts, &rbacrest.PolicyData{Roles: map[string][]rbacv1.Role{namespace: roles[namespace]}})
	}
	bindings := bootstrappolicy.NamespaceRoleBindings()
	for _, namespace := range slices.Sorted(maps.Keys(bindings)) {
		parts = append(parts, &rbacrest.PolicyData{RoleBindings: map[string][]rbacv1.RoleBinding{namespace: bindings[namespace]}})
	}
	return parts
}
