package fakes

import (
	"encoding/json"

	"snowglobe.test/fakes/oidc"
)

// audience is the API server's, in the tokens of fake issuers.
const audience = "kubernetes"

func serveOIDC(at fakePlace) (*fake, error) {
	issuer, err := oidc.Serve(at.listener, at.host)
	if err != nil {
		return nil, err
	}
	show := func(r oidc.Request) any { return map[string]string{"path": r.Path} }
	document := func(content json.RawMessage) (reply[oidc.Request, oidc.Answer], error) {
		return always[oidc.Request](oidc.Answer{Body: content}), nil
	}
	asked := func(r oidc.Request) string { return "GET " + r.Path }
	said := func(oidc.Answer) string { return "answered" }
	return &fake{
		server: issuer, ca: issuer.CA(),
		use: useOf(issuer.Requests, show, document), calls: callsOf(issuer.Requests, asked, said),
		files: map[string][]byte{authenticationExtension: issuer.AuthenticationConfiguration("controlplane", audience)},
		issue: issuer.Issue,
		rotate: func(drop bool) error {
			if err := issuer.Rotate(); err != nil {
				return err
			}
			if drop {
				issuer.DropOldKeys()
			}
			return nil
		},
	}, nil
}
