package inject

import (
	"io"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

// Authentication wraps upstream's authenticators and asks the rules before a
// service-account token or client certificate passes. Upstream makes errors 401s.
func Authentication(upstream authenticator.Request, i *edge.Injector) authenticator.Request {
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		growStack() // in the goroutine that upstream has begun for the request
		response, ok, err := upstream.AuthenticateRequest(req)
		if err != nil || !ok || !i.Active() {
			return response, ok, err
		}
		active, point := activeOf(req), authPoint(response.User)
		if active == nil || point == "" {
			return response, ok, nil
		}
		if err := edge.Execute(active.client, i, func() fault.Operation {
			return fault.Operation{Point: point, Caller: response.User.GetName()}
		}, edge.Ways[error]{
			Proceed: func() error { return nil },
			Fail:    func(err error) error { return err },
			Abort: func(err error) error {
				active.conn.abort(io.ErrUnexpectedEOF)
				return err
			},
		}); err != nil {
			return nil, false, err
		}
		return response, true, nil
	})
}

// certificateID is the prefix of upstream's credential IDs of certificates.
const certificateID = "X509SHA256="

// authPoint is empty except for a client certificate or service-account token.
func authPoint(who user.Info) string {
	for _, id := range who.GetExtra()[user.CredentialIDKey] {
		if strings.HasPrefix(id, certificateID) {
			return fault.AuthCertificate
		}
	}
	if strings.HasPrefix(who.GetName(), serviceaccount.ServiceAccountUsernamePrefix) {
		return fault.AuthToken
	}
	return ""
}
