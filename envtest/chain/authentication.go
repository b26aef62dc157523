package chain

import (
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/union"
)

// withTokens asks tokens before upstream's authenticators, so that an added user
// needs no certificate check on each request.
func withTokens(tokens authenticator.Token, upstream authenticator.Request) authenticator.Request {
	if tokens == nil {
		return upstream
	}
	return union.New(group.NewAuthenticatedGroupAdder(bearer{tokens}), upstream)
}

// bearer finds the token in the Authorization header. Unlike upstream's it passes
// an unknown token on to the next authenticator without an error.
type bearer struct{ tokens authenticator.Token }

// AuthenticateRequest implements authenticator.Request.
func (b bearer) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	header := req.Header.Get("Authorization")
	token, ok := strings.CutPrefix(header, "Bearer ")
	if !ok || token == "" {
		return nil, false, nil
	}
	response, ok, err := b.tokens.AuthenticateToken(req.Context(), token)
	if ok {
		req.Header.Del("Authorization") // as upstream: it goes no further
	}
	return response, ok, err
}
