package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"

	"snowglobe.test/fakes/stub"
)

// TokenReview is the webhook that tells whose a bearer token is. By itself it knows the
// tokens of SetToken and no other. Its records contain the tokens.
type TokenReview struct {
	server
	// Requests decides the answers and records the calls.
	Requests *stub.Table[TokenRequest, TokenAnswer]

	mu     sync.Mutex
	tokens map[string]TokenAnswer
}

// TokenRequest is what a token review webhook is asked.
type TokenRequest struct {
	HTTP HTTP
	authenticationv1.TokenReviewSpec
}

// TokenAnswer is what it answers.
type TokenAnswer = authenticationv1.TokenReviewStatus

// TokenRule says how some requests are answered.
type TokenRule = stub.Rule[TokenRequest, TokenAnswer]

// ServeTokenReview serves a token review webhook with a certificate for the hosts, each
// a DNS name or an IP; without any, for the host of the listener. The listener is the
// webhook's from now on, also if ServeTokenReview fails.
func ServeTokenReview(l net.Listener, hosts ...string) (*TokenReview, error) {
	t := &TokenReview{tokens: map[string]TokenAnswer{}}
	t.Requests = stub.NewTable(func(_ context.Context, request TokenRequest) (TokenAnswer, error) {
		return t.review(request.TokenReviewSpec), nil
	})
	return t, t.serve(l, authenticationv1.SchemeGroupVersion.WithKind("TokenReview"), authenticationv1.AddToScheme,
		"--authentication-token-webhook-version=v1", t.handle, hosts)
}

// SetToken says whose a token is, and for which audiences; none means that it is for
// whatever audience the API server asks.
func (t *TokenReview) SetToken(token string, user authenticationv1.UserInfo, audiences ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tokens[token] = TokenAnswer{Authenticated: true, User: user, Audiences: audiences}
}

// RemoveToken makes a token unknown.
func (t *TokenReview) RemoveToken(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tokens, token)
}

func (t *TokenReview) review(spec authenticationv1.TokenReviewSpec) TokenAnswer {
	t.mu.Lock()
	status, known := t.tokens[spec.Token]
	t.mu.Unlock()
	switch {
	case !known || len(spec.Audiences) == 0:
		return status
	case len(status.Audiences) == 0:
		status.Audiences = spec.Audiences
		return status
	}
	status.Audiences = slices.DeleteFunc(slices.Clone(status.Audiences), func(audience string) bool {
		return !slices.Contains(spec.Audiences, audience)
	})
	if len(status.Audiences) == 0 {
		return TokenAnswer{Error: "the token is for other audiences"}
	}
	return status
}

// Kubeconfig is a file for --authentication-token-webhook-config-file.
func (t *TokenReview) Kubeconfig() []byte { return t.kubeconfig() }

func (t *TokenReview) handle(w http.ResponseWriter, r *http.Request) {
	var review authenticationv1.TokenReview
	err := t.kind.read(r, &review)
	if err == nil && review.Spec.Token == "" {
		err = errors.New("the review has no token")
	}
	respond(w, r, t.Requests, TokenRequest{origin(r), review.Spec}, err, func(answer TokenAnswer) any {
		return authenticationv1.TokenReview{TypeMeta: t.kind.typeMeta(), Status: answer}
	})
}
