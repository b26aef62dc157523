package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"

	"gopkg.in/go-jose/go-jose.v2"

	"snowglobe.test/fakes/stub"
)

// Where the issuer's documents are.
const (
	DiscoveryPath = "/.well-known/openid-configuration"
	KeysPath      = "/keys"
)

// Issuer is an OpenID Connect issuer with a key to sign tokens.
type Issuer struct {
	// Server is the issuer's. Its URL is the issuer, as tokens and the flag --oidc-issuer-url
	// name it; CA is the content of the file for --oidc-ca-file.
	*stub.Server
	// Requests decides how the documents are served, and records who asked for them.
	Requests *stub.Table[Request, Answer]

	mu        sync.Mutex
	made      int               // keys so far
	keys      []jose.JSONWebKey // newest first
	published int               // how many of them are in the document
}

// Request is one for a document.
type Request struct {
	Path   string
	Header http.Header
}

// Answer is a document.
type Answer struct {
	Header http.Header
	Body   []byte
}

// Rule says how some requests are answered.
type Rule = stub.Rule[Request, Answer]

// Serve serves an issuer over HTTPS, with a certificate for the hosts, each a DNS name
// or an IP; without any, for the host of the listener. The listener is the issuer's from
// now on, also if Serve fails.
func Serve(l net.Listener, hosts ...string) (*Issuer, error) {
	i := &Issuer{}
	i.Requests = stub.NewTable(func(_ context.Context, request Request) (Answer, error) { return i.Document(request.Path) })
	if err := i.Rotate(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	i.mu.Lock() // no document without the server, whose URL it names
	defer i.mu.Unlock()
	var err error
	if i.Server, err = stub.ServeTLS(l, http.HandlerFunc(i.handle), hosts...); err != nil {
		return nil, fmt.Errorf("serve an OIDC issuer: %w", err)
	}
	return i, nil
}

// Document is what the issuer answers by itself to a request for a path. Rules use it to
// change an answer, such as by a Cache-Control header.
func (i *Issuer) Document(path string) (Answer, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var document any
	switch path {
	case DiscoveryPath:
		document = struct {
			Issuer     string   `json:"issuer"`
			Keys       string   `json:"jwks_uri"`
			Responses  []string `json:"response_types_supported"`
			Subjects   []string `json:"subject_types_supported"`
			Algorithms []string `json:"id_token_signing_alg_values_supported"`
		}{i.URL(), i.URL() + KeysPath, []string{"id_token"}, []string{"public"}, []string{string(algorithm)}}
	case KeysPath:
		set := jose.JSONWebKeySet{}
		for _, key := range i.keys[:i.published] {
			set.Keys = append(set.Keys, key.Public())
		}
		document = set
	default:
		body := fmt.Appendf(nil, "there is no %s, only %s and %s\n", path, DiscoveryPath, KeysPath)
		return Answer{}, stub.Status{Code: http.StatusNotFound, Body: body}
	}
	body, err := json.Marshal(document)
	if err != nil {
		return Answer{}, fmt.Errorf("encode the document at %s: %w", path, err)
	}
	return Answer{Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil
}

func (i *Issuer) handle(w http.ResponseWriter, r *http.Request) {
	request := Request{Path: r.URL.Path, Header: r.Header.Clone()}
	if r.Method != http.MethodGet {
		err := fmt.Errorf("the method is %s, want GET", r.Method)
		i.Requests.Reject(request, err)
		http.Error(w, err.Error(), http.StatusMethodNotAllowed)
		return
	}
	answer, err := i.Requests.Serve(r.Context(), request)
	if err != nil {
		stub.WriteError(w, err)
		return
	}
	maps.Copy(w.Header(), answer.Header)
	_, _ = w.Write(answer.Body) // the client may be gone
}

// AuthenticationConfiguration is a file for --authentication-config that has the API
// server accept the issuer's tokens for the audiences, with sub as the user's name and
// groups as the groups. It reaches the issuer through the network of that type in its
// egress selector, such as controlplane; empty means directly.
func (i *Issuer) AuthenticationConfiguration(egressSelectorType string, audiences ...string) []byte {
	claim := func(name string) map[string]any { return map[string]any{"claim": name, "prefix": ""} }
	issuer := map[string]any{"url": i.URL(), "audiences": audiences, "certificateAuthority": string(i.CA())}
	if egressSelectorType != "" {
		issuer["egressSelectorType"] = egressSelectorType
	}
	content, _ := json.Marshal(map[string]any{ // strings alone: it can be encoded
		"apiVersion": "apiserver.config.k8s.io/v1",
		"kind":       "AuthenticationConfiguration",
		"jwt": []any{map[string]any{
			"issuer":        issuer,
			"claimMappings": map[string]any{"username": claim("sub"), "groups": claim("groups")},
		}},
	})
	return content
}
