package chain

import (
	"io"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"snowglobe.test/envtest/fault"
)

// authEdge asks about the service-account tokens and client certificates that
// upstream's authenticators have found to be good.
type authEdge struct {
	edge     *fault.Injector
	upstream authenticator.Request
}

// AuthenticateRequest implements authenticator.Request. With an error upstream
// answers 401.
func (a authEdge) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := a.upstream.AuthenticateRequest(req)
	if err != nil || !ok || !a.edge.Active() {
		return response, ok, err
	}
	traced, point := tracedOf(req), authPoint(response.User)
	if traced == nil || point == "" {
		return response, ok, nil
	}
	d, err := a.edge.At(traced.life, func() fault.Operation {
		return fault.Operation{Point: point, Caller: response.User.GetName()}
	})
	switch {
	case err != nil:
		traced.fate.breakOff(io.ErrUnexpectedEOF)
		return nil, false, err
	case d.Kind == fault.Fail:
		return nil, false, d.Err()
	}
	return response, true, nil
}

// certificateID is how upstream begins to name a certificate as a credential.
const certificateID = "X509SHA256="

// authPoint is the point of what a user has authenticated by, "" for anything
// but a client certificate and a service-account token.
func authPoint(who user.Info) string {
	for _, id := range who.GetExtra()[user.CredentialIDKey] {
		if strings.HasPrefix(id, certificateID) {
			return "auth/certificate"
		}
	}
	if strings.HasPrefix(who.GetName(), serviceaccount.ServiceAccountUsernamePrefix) {
		return "auth/token"
	}
	return ""
}
