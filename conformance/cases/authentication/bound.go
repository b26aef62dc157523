package authentication

import (
	"context"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
)

var boundCases = []suite.Case{
	{ID: "S7/token-dies-with-its-account", Level: suite.Core, Waits: true, Failure: true,
		Test:   tokenDiesWithItsAccount,
		Source: "KEP-1205; k8s.io/kubernetes/pkg/serviceaccount/claims.go, Validate: the account's UID",
		Promise: "When a service account is deleted its tokens are answered 401, also when a new account has " +
			"its name."},
	{ID: "S7/token-dies-with-its-secret", Level: suite.Core, Waits: true, Failure: true, Test: tokenDiesWithItsSecret,
		Source: "KEP-1205; k8s.io/kubernetes/pkg/serviceaccount/claims.go, Validate: the Secret's UID",
		Promise: "A token that is bound to a Secret is answered 401 once that is deleted, also when a new one has " +
			"its name, and the account's other tokens go on."},
	{ID: "S7/token-dies-with-its-pod", Waits: true, Failure: true, Needs: suite.Launch, Test: tokenDiesWithItsPod,
		Source: "KEP-1205; KEP-4193; k8s.io/kubernetes/pkg/serviceaccount/claims.go, Claims and Validate",
		Promise: "A token that is bound to a Pod names the Pod and its node as extra of the user, and is answered " +
			"401 once the Pod is deleted."},
}

func makeSecret(ctx context.Context, t *suite.T, name string) *corev1.Secret {
	secrets := t.Kube.CoreV1().Secrets(t.Namespace(ctx))
	return suite.Create(ctx, t, secrets.Create, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// makePod creates a Pod of a service account, on a node that does not exist.
func makePod(ctx context.Context, t *suite.T, name, account string) *corev1.Pod {
	pod := suite.Pod(name, "main")
	pod.Spec.ServiceAccountName, pod.Spec.NodeName = account, "s7-no-such-node"
	return suite.Create(ctx, t, t.Kube.CoreV1().Pods(t.Namespace(ctx)).Create, pod)
}

var atOnce = metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}

func tokenDiesWithItsAccount(ctx context.Context, t *suite.T) {
	ns := t.Namespace(ctx)
	t.Account(ctx, "robot")
	token := t.Token(ctx, "robot", authenticationv1.TokenRequestSpec{})
	t.WithToken(token).MustWhoAmI(ctx)
	t.Must(t.Kube.CoreV1().ServiceAccounts(ns).Delete(ctx, "robot", metav1.DeleteOptions{}), "delete the account")
	untilRefused(ctx, t.WithToken(token), "the account is deleted")
	t.Account(ctx, "robot")
	next := t.Token(ctx, "robot", authenticationv1.TokenRequestSpec{})
	untilKnown(ctx, t.WithToken(next), "system:serviceaccount:"+ns+":robot")
	untilRefused(ctx, t.WithToken(token), "a new account has the name")
}

// boundTo is a token that is bound to an object.
func boundTo(kind, name string) authenticationv1.TokenRequestSpec {
	return authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1",
		Kind: kind, Name: name}}
}

func tokenDiesWithItsSecret(ctx context.Context, t *suite.T) {
	t.Account(ctx, "robot")
	secret := makeSecret(ctx, t, "bound")
	token, free := t.Token(ctx, "robot", boundTo("Secret", "bound")), t.Token(ctx, "robot",
		authenticationv1.TokenRequestSpec{})
	t.Expect(claimsOf(t, token).About.Secret).
		To(gomega.Equal(map[string]string{"name": "bound", "uid": string(secret.UID)}))
	t.WithToken(token).MustWhoAmI(ctx)
	t.Must(t.Kube.CoreV1().Secrets(t.Namespace(ctx)).Delete(ctx, "bound", metav1.DeleteOptions{}), "delete the Secret")
	untilRefused(ctx, t.WithToken(token), "the Secret is deleted")
	makeSecret(ctx, t, "bound")
	t.WithToken(t.Token(ctx, "robot", boundTo("Secret", "bound"))).MustWhoAmI(ctx)
	untilRefused(ctx, t.WithToken(token), "a new Secret has the name")
	t.WithToken(free).MustWhoAmI(ctx)
}

func tokenDiesWithItsPod(ctx context.Context, t *suite.T) {
	_, t = t.Shared(ctx, "plain")
	t.Account(ctx, "robot")
	pod := makePod(ctx, t, "main", "robot")
	token := t.Token(ctx, "robot", boundTo("Pod", "main"))
	c := claimsOf(t, token)
	t.Expect(c.About.Pod).To(gomega.Equal(map[string]string{"name": "main", "uid": string(pod.UID)}))
	t.Expect(c.About.Node).To(gomega.Equal(map[string]string{"name": "s7-no-such-node"}))
	t.Expect(t.WithToken(token).MustWhoAmI(ctx).Extra).To(gomega.Equal(map[string]authenticationv1.ExtraValue{
		"authentication.kubernetes.io/credential-id": {"JTI=" + c.ID},
		"authentication.kubernetes.io/pod-name":      {"main"},
		"authentication.kubernetes.io/pod-uid":       {string(pod.UID)},
		"authentication.kubernetes.io/node-name":     {"s7-no-such-node"},
	}))
	t.Must(t.Kube.CoreV1().Pods(pod.Namespace).Delete(ctx, "main", atOnce), "delete the Pod")
	untilRefused(ctx, t.WithToken(token), "the Pod is deleted")
	_, err := t.RequestToken(ctx, "robot", boundTo("Pod", "main"))
	t.Expect(err).To(suite.BeStatus(suite.NotFound), "a token for a Pod that is gone")
}
