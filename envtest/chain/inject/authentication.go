package inject

import (
	"io"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"snowglobe.test/envtest/fault"
)

// Authentication wraps upstream's authenticators and asks the rules before a
// service-account token or a client certificate that they accept is accepted.
func Authentication(upstream authenticator.Request, i *fault.Injector) authenticator.Request {
	return &requestAuthenticator{upstream, i}
}

type requestAuthenticator struct {
	upstream authenticator.Request
	injector *fault.Injector
}

// verdict is what an authenticator returns.
type verdict struct {
	response *authenticator.Response
	ok       bool
	err      error
}

// AuthenticateRequest implements authenticator.Request. Upstream turns an error into
// a 401.
func (a *requestAuthenticator) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := a.upstream.AuthenticateRequest(req)
	if err != nil || !ok || !a.injector.Active() {
		return response, ok, err
	}
	active, point := activeOf(req), authPoint(response.User)
	if active == nil || point == "" {
		return response, ok, nil
	}
	v := fault.Execute(active.client, a.injector, func() fault.Operation {
		return fault.Operation{Point: point, Caller: response.User.GetName()}
	}, fault.Ways[verdict]{
		Proceed: func() verdict { return verdict{response: response, ok: true} },
		Fail:    func(err error) verdict { return verdict{err: err} },
		Abort: func(err error) verdict {
			active.conn.abort(io.ErrUnexpectedEOF)
			return verdict{err: err}
		},
	})
	return v.response, v.ok, v.err
}

// certificateID is the prefix of upstream's credential IDs of certificates.
const certificateID = "X509SHA256="

// authPoint is the point for the credential of a user; empty for anything but a
// client certificate or a service-account token.
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
