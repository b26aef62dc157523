package suite

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// WithToken returns a target whose clients show a bearer token and no other credentials;
// none at all if it is empty. Like that of As, it shares the namespace of this one.
func (t *Target) WithToken(token string) *Target {
	config := rest.AnonymousClientConfig(t.Cluster.Config)
	config.Transport = t.Cluster.Config.Transport // the way to a server in this process
	config.BearerToken = token
	return t.With(config)
}

// With returns a target whose clients have another configuration for the same cluster, such
// as other credentials, or that of one of several servers.
func (t *Target) With(config *rest.Config) *Target {
	cluster := *t.Cluster
	cluster.Config = config
	other, err := newTarget(&cluster, t.id, t.fail)
	t.Must(err, "clients of %s", config.Host)
	other.Name, other.namespace, other.temporary = t.Name, t.namespace, t.temporary
	t.Cleanup(other.cleanUp)
	return other
}

// WhoAmI asks the server whom it takes the target's clients for.
func (t *Target) WhoAmI(ctx context.Context) (authenticationv1.UserInfo, error) {
	review, err := t.Kube.AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

// MustWhoAmI is WhoAmI for those whom the server must know.
func (t *Target) MustWhoAmI(ctx context.Context) authenticationv1.UserInfo {
	info, err := t.WhoAmI(ctx)
	t.Must(err, "ask who one is")
	return info
}

// AskWhoAmI is WhoAmI with headers that no client would send by itself.
func (t *Target) AskWhoAmI(ctx context.Context, header map[string]string) Answer {
	return t.Ask(ctx, Request{Method: http.MethodPost, Path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", Header: header,
		Body: metav1.TypeMeta{Kind: "SelfSubjectReview", APIVersion: authenticationv1.SchemeGroupVersion.String()}})
}

// UserIn is the user that an answer to AskWhoAmI names.
func (t *Target) UserIn(got Answer) authenticationv1.UserInfo {
	t.Expect(got.Code).To(gomega.Equal(http.StatusCreated), "%s", got)
	var review authenticationv1.SelfSubjectReview
	t.Must(json.Unmarshal(got.Body, &review), "decode: %s", got)
	return review.Status.UserInfo
}
