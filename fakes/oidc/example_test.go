package oidc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"snowglobe.test/fakes/oidc"
)

func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	issuer, err := oidc.Serve(l)
	if err != nil {
		log.Fatal(err)
	}
	defer issuer.Stop(context.Background())

	// For the API server: --oidc-issuer-url is issuer.URL(), --oidc-ca-file a file with
	// issuer.CA(), --oidc-client-id=kubernetes and --oidc-signing-algs=ES256.

	good := oidc.Token{
		Subject:  "jane",
		Audience: []string{"kubernetes"},
		Claims:   map[string]any{"groups": []string{"dev"}},
	}
	expired, forged := good, good
	expired.Lifetime = -time.Minute
	forged.Key = oidc.ForgedKey
	for _, token := range []oidc.Token{good, expired, forged} {
		bearer, err := issuer.Issue(token)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(subject(bearer))
	}

	// The next tokens have a new key. Those before stay valid until DropOldKeys.
	if err := issuer.Rotate(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(publishedKeys(issuer))
	// Output:
	// jane
	// jane
	// jane
	// [key-2 key-1]
}

// subject reads a token as a client would that does not verify it.
func subject(token string) any {
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		log.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		log.Fatal(err)
	}
	return claims["sub"]
}

// publishedKeys asks the issuer for its keys, as an API server does.
func publishedKeys(issuer *oidc.Issuer) []string {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(issuer.CA())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(issuer.URL() + oidc.KeysPath)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	var set struct {
		Keys []struct {
			ID string `json:"kid"`
		} `json:"keys"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil {
		log.Fatal(err)
	}
	var ids []string
	for _, key := range set.Keys {
		ids = append(ids, key.ID)
	}
	return ids
}
