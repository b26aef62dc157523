package suite

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Account creates a service account in the case's namespace.
func (t *T) Account(ctx context.Context, name string) *corev1.ServiceAccount {
	accounts := t.Kube.CoreV1().ServiceAccounts(t.Namespace(ctx))
	return Create(ctx, t, accounts.Create, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// RequestToken asks for a token of a service account in the case's namespace.
func (t *T) RequestToken(ctx context.Context, account string,
	spec authenticationv1.TokenRequestSpec) (*authenticationv1.TokenRequest, error) {
	return t.Kube.CoreV1().ServiceAccounts(t.Namespace(ctx)).
		CreateToken(ctx, account, &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
}

// Token returns a token of a service account in the case's namespace.
func (t *T) Token(ctx context.Context, account string, spec authenticationv1.TokenRequestSpec) string {
	request, err := t.RequestToken(ctx, account, spec)
	t.Must(err, "request a token of service account %s", account)
	return request.Status.Token
}
