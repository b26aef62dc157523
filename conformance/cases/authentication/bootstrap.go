package authentication

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
)

var bootstrapCases = suite.Launching([]suite.Case{
	{ID: "S7/bootstrap-token-lets-a-node-in", Waits: true, Test: bootstrapTokenLetsANodeIn,
		Source: "k8s.io/kubernetes/plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go, AuthenticateToken",
		Promise: "A bootstrap token, a Secret in kube-system, authenticates as system:bootstrap:ID in " +
			"system:bootstrappers and its extra groups, until the Secret is deleted."},
	{ID: "S7/bootstrap-token-must-be-in-order", Failure: true, Test: bootstrapTokenMustBeInOrder,
		Source: "k8s.io/kubernetes/plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go; " +
			"k8s.io/cluster-bootstrap/util/secrets/secrets.go",
		Promise: "A bootstrap token that has expired, is not for authentication, has another ID, another secret, " +
			"another type or the groups of others is answered 401."},
})

// withBootstrapTokens is a control plane that knows bootstrap tokens.
func withBootstrapTokens(ctx context.Context, t *suite.T) *suite.T {
	_, other := t.Shared(ctx, "bootstrap-tokens", envtest.WithFlags("--enable-bootstrap-token-auth"))
	return other
}

const tokenSecret = "0123456789abcdef"

// makeBootstrapToken creates the Secret of a token; what data says replaces what is in order.
func makeBootstrapToken(ctx context.Context, t *suite.T, id string, data map[string]string) {
	all := map[string]string{"token-id": id, "token-secret": tokenSecret, "usage-bootstrap-authentication": "true",
		"expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	maps.Copy(all, data)
	kind := cmp.Or(corev1.SecretType(all["type"]), "bootstrap.kubernetes.io/token")
	delete(all, "type")
	secrets := t.Kube.CoreV1().Secrets(metav1.NamespaceSystem)
	suite.Create(ctx, t, secrets.Create, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
		Type: kind, StringData: all})
}

func bootstrapTokenLetsANodeIn(ctx context.Context, t *suite.T) {
	other := withBootstrapTokens(ctx, t)
	makeBootstrapToken(ctx, other, "lets1n", map[string]string{"auth-extra-groups": "system:bootstrappers:north"})
	node := other.WithToken("lets1n." + tokenSecret)
	untilKnown(ctx, node, "system:bootstrap:lets1n")
	t.Expect(node.MustWhoAmI(ctx)).To(gomega.Equal(authenticationv1.UserInfo{Username: "system:bootstrap:lets1n",
		Groups: []string{"system:bootstrappers", "system:bootstrappers:north", "system:authenticated"}}))
	refused(ctx, other.WithToken("lets1n.fedcba9876543210"), "another secret")
	refused(ctx, other.WithToken("0thers."+tokenSecret), "another ID")
	t.Must(other.Kube.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, "bootstrap-token-lets1n",
		metav1.DeleteOptions{}), "delete the Secret")
	untilRefused(ctx, node, "the Secret is deleted")
}

func bootstrapTokenMustBeInOrder(ctx context.Context, t *suite.T) {
	other := withBootstrapTokens(ctx, t)
	broken := map[string]map[string]string{
		"expir3": {"expiration": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)},
		"n0date": {"expiration": "tomorrow"},
		"unused": {"usage-bootstrap-authentication": "false"},
		"id0000": {"token-id": "id0001"},
		"typ3d0": {"type": "Opaque"},
		"gr0ups": {"auth-extra-groups": "system:masters"},
	}
	for id, data := range broken {
		makeBootstrapToken(ctx, other, id, data)
	}
	makeBootstrapToken(ctx, other, "inord3", nil) // the last: the server knows all when it knows this
	untilKnown(ctx, other.WithToken("inord3."+tokenSecret), "system:bootstrap:inord3")
	for id, data := range broken {
		_, err := other.WithToken(id + "." + tokenSecret).WhoAmI(ctx)
		t.Expect(err).To(suite.BeStatus(suite.Unauthorized), "%v", data)
	}
}
