package chain

import (
	"fmt"
	"time"
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

// Upstream's hook tries once a second for 30 seconds.
const (
	rbacTimeout    = 30 * time.Second
	rbacFirstPause = 5 * time.Millisecond
	rbacMaxPause   = time.Second
)

// bootstrapRoles is the rbac/bootstrap-roles hook without the whole second that
// upstream's waits before its first try, the longest wait of a boot. What it
// does is upstream's.
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
	deadline := time.Now().Add(rbacTimeout)
	for pause := rbacFirstPause; ; pause = min(2*pause, rbacMaxPause) {
		done, err := ensureRBACPolicy(policy, client)
		if done || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("unable to initialize roles: not reconciled within %s", rbacTimeout)
		}
		select {
		case <-time.After(pause):
		case <-hook.Done():
			return nil // the server stops; upstream's hook would go on unseen
		}
	}
}
