package target

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"snowglobe.test/envtest"
)

// rolesTimeout bounds the wait for the default roles, and rolesInterval is its pause.
const (
	rolesTimeout  = 30 * time.Second
	rolesInterval = 10 * time.Millisecond
)

// awaitDefaultRoles waits until the authorizers of servers know the default roles. A ready
// server has them in its store, but its authorizer learns of them by a watch, and most cases
// take them for granted. A server that is not ready, because a rule holds its start, is skipped.
func awaitDefaultRoles(ctx context.Context, cp *envtest.ControlPlane) error {
	for _, server := range cp.Servers() {
		if ready, _ := server.Ready(ctx); !ready {
			continue
		}
		client, err := kubernetes.NewForConfig(server.Config())
		if err != nil {
			return err
		}
		if err := untilDefaultRoles(ctx, client); err != nil {
			return fmt.Errorf("%s: %w", server.Name(), err)
		}
	}
	return nil
}

// untilDefaultRoles waits until the authorizer of a server knows the default roles.
func untilDefaultRoles(ctx context.Context, client *kubernetes.Clientset) error {
	err := wait.PollUntilContextTimeout(ctx, rolesInterval, rolesTimeout, true,
		func(ctx context.Context) (bool, error) {
			return knowsDefaultRoles(ctx, client)
		})
	if err != nil {
		return fmt.Errorf("the server is ready, but its authorizer does not know the default roles: %w", err)
	}
	return nil
}

// knowsDefaultRoles asks for a permission that one of the last default bindings grants. A server
// without RBAC makes no default roles, so it has none to learn.
func knowsDefaultRoles(ctx context.Context, client *kubernetes.Clientset) (bool, error) {
	made := client.RESTClient().Get().AbsPath("/readyz/poststarthook/rbac/bootstrap-roles").Do(ctx).Error()
	if apierrors.IsNotFound(made) {
		return true, nil
	}
	review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "conformance", Groups: []string{"system:serviceaccounts"},
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/openid/v1/jwks", Verb: "get"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
