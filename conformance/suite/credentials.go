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
func (t *T) WithToken(token string) *T {
	config := rest.AnonymousClientConfig(t.Cluster.Config)
	config.Transport = t.Cluster.Config.Transport // the way to a server in this process
	config.BearerToken = token
	return t.With(config)
}

// With returns a target whose clients have another configuration for the same cluster, such
// as other credentials, or that of one of several servers.
func (t *T) With(config *rest.Config) *T {
	cluster := *t.Cluster
	cluster.Config = config
	other, err := newT(&cluster, t.page, t.id, t.fail)
	t.Must(err, "clients of %s", config.Host)
	other.Name, other.namespace, other.borrowed = t.Name, t.namespace, true
	t.Cleanup(other.cleanUp)
	return other
}

// WhoAmI asks the server whom it takes the target's clients for.
func (t *T) WhoAmI(ctx context.Context) (authenticationv1.UserInfo, error) {
	review, err := t.Kube.AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

// MustWhoAmI is WhoAmI for those whom the server must know.
func (t *T) MustWhoAmI(ctx context.Context) authenticationv1.UserInfo {
	info, err := t.WhoAmI(ctx)
	t.Must(err, "ask who one is")
	return info
}

// AskWhoAmI is WhoAmI with headers that no client would send by itself.
func (t *T) AskWhoAmI(ctx context.Context, header map[string]string) Answer {
	return t.Ask(ctx, Request{Method: http.MethodPost, Path: "/apis/authentication.k8s.io/v1/selfsubjectreviews",
		Header: header,
		Body:   metav1.TypeMeta{Kind: "SelfSubjectReview", APIVersion: authenticationv1.SchemeGroupVersion.String()}})
}

// UserIn is the user that an answer to AskWhoAmI names.
func (t *T) UserIn(got Answer) authenticationv1.UserInfo {
	t.Expect(got.Code).To(gomega.Equal(http.StatusCreated), "%s", got)
	var review authenticationv1.SelfSubjectReview
	t.Must(json.Unmarshal(got.Body, &review), "decode: %s", got)
	return review.Status.UserInfo
}
