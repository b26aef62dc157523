package oidc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	upstream "k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/oidc"
	"snowglobe.test/fakes/stub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// everywhere runs a test on a loopback socket and in a bubble of virtual time.
func everywhere(t *testing.T, test func(*testing.T, net.Listener, dialer)) {
	t.Run("socket", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		test(t, l, nil)
	})
	t.Run("bubble", func(t *testing.T) { bubble(t, test) })
}

func bubble(t *testing.T, test func(*testing.T, net.Listener, dialer)) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		test(t, l, l.DialNetwork)
	})
}

func serve(t *testing.T, l net.Listener) *oidc.Issuer {
	t.Helper()
	issuer, err := oidc.Serve(l)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, issuer.Stop(context.Background())) })
	return issuer
}

func newClient(t *testing.T, issuer *oidc.Issuer, dial dialer) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(issuer.CA()))
	transport := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second} // as upstream's
}

// verifier is the API server's own, for the audience "api".
type verifier struct {
	upstream.AuthenticatorTokenWithHealthCheck
	settle func() // upstream lets a token pass before it has cached the keys it fetched
}

func newAuthenticator(t *testing.T, issuer *oidc.Issuer, dial dialer) verifier {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	prefix := "oidc:"
	authenticator, err := upstream.New(ctx, upstream.Options{
		JWTAuthenticator: apiserver.JWTAuthenticator{
			Issuer: apiserver.Issuer{URL: issuer.URL(), Audiences: []string{"api"}},
			ClaimMappings: apiserver.ClaimMappings{
				Username: apiserver.PrefixedClaimOrExpression{Claim: "sub", Prefix: &prefix},
				Groups:   apiserver.PrefixedClaimOrExpression{Claim: "groups", Prefix: &prefix},
			},
		},
		Client:               newClient(t, issuer, dial),
		SupportedSigningAlgs: []string{"ES256"},
	})
	require.NoError(t, err)
	if dial == nil {
		return verifier{authenticator, func() {}}
	}
	return verifier{authenticator, synctest.Wait}
}

// becomesHealthy waits for upstream to find the issuer, which it tries every ten seconds.
func becomesHealthy(t *testing.T, authenticator verifier) {
	t.Helper()
	require.Eventually(t, func() bool { return authenticator.HealthCheck() == nil }, time.Minute, time.Millisecond)
}

func jane(key oidc.Key) oidc.Token {
	return oidc.Token{Subject: "jane", Audience: []string{"api"}, Key: key, Claims: map[string]any{"groups": []string{"dev"}}}
}

// authenticate returns the error, after it has checked what comes without one.
func authenticate(t *testing.T, authenticator verifier, issuer *oidc.Issuer, token oidc.Token) error {
	t.Helper()
	encoded, err := issuer.Issue(token)
	require.NoError(t, err)
	authenticator.settle()
	response, ok, err := authenticator.AuthenticateToken(t.Context(), encoded)
	if err != nil {
		return err
	}
	if !ok {
		return errors.New("not for this authenticator")
	}
	assert.Equal(t, &user.DefaultInfo{Name: "oidc:jane", Groups: []string{"oidc:dev"}, Extra: response.User.GetExtra()}, response.User)
	return nil
}

func TestTokens(t *testing.T) {
	everywhere(t, func(t *testing.T, l net.Listener, dial dialer) {
		issuer := serve(t, l)
		authenticator := newAuthenticator(t, issuer, dial)
		becomesHealthy(t, authenticator)
		with := func(change func(*oidc.Token)) oidc.Token {
			token := jane(oidc.CurrentKey)
			change(&token)
			return token
		}
		for _, c := range []struct {
			name  string
			token oidc.Token
			want  string
		}{
			{"good", jane(oidc.CurrentKey), ""},
			{"several audiences", with(func(t *oidc.Token) { t.Audience = []string{"other", "api"} }), ""},
			{"wrong audience", with(func(t *oidc.Token) { t.Audience = []string{"other"} }), "expected audience"},
			{"no audience", with(func(t *oidc.Token) { t.Audience = nil }), "expected audience"},
			{"expired", with(func(t *oidc.Token) { t.Lifetime = -time.Second }), "token is expired"},
			{"wrong issuer", with(func(t *oidc.Token) { t.Claims["iss"] = "https://other" }), "not for this authenticator"},
			{"no subject", with(func(t *oidc.Token) { t.Claims["sub"] = nil }), "claim not present"},
			{"unknown key", jane(oidc.UnknownKey), "failed to verify"},
			{"forged key", jane(oidc.ForgedKey), "failed to verify"},
			{"no key", jane(oidc.NoKey), "signed with unsupported algorithm"},
		} {
			err := authenticate(t, authenticator, issuer, c.token)
			if c.want == "" {
				assert.NoError(t, err, c.name)
			} else {
				assert.ErrorContains(t, err, c.want, c.name)
			}
		}
		paths := []string{}
		for _, call := range issuer.Requests.Calls()[:2] {
			paths = append(paths, call.Request.Path)
		}
		assert.Equal(t, []string{oidc.DiscoveryPath, oidc.KeysPath}, paths)
	})
}

func TestTokenExpiresInTime(t *testing.T) {
	bubble(t, func(t *testing.T, l net.Listener, dial dialer) {
		issuer := serve(t, l)
		authenticator := newAuthenticator(t, issuer, dial)
		becomesHealthy(t, authenticator)
		encoded, err := issuer.Issue(jane(oidc.CurrentKey))
		require.NoError(t, err)
		time.Sleep(59 * time.Minute)
		_, _, err = authenticator.AuthenticateToken(t.Context(), encoded)
		assert.NoError(t, err)
		time.Sleep(2 * time.Minute)
		_, _, err = authenticator.AuthenticateToken(t.Context(), encoded)
		assert.ErrorContains(t, err, "token is expired")
	})
}

func TestRotate(t *testing.T) {
	bubble(t, func(t *testing.T, l net.Listener, dial dialer) {
		issuer := serve(t, l)
		_, err := issuer.Issue(jane(oidc.PreviousKey))
		assert.EqualError(t, err, "sign a token with the previous key: there is none before Rotate")
		require.NoError(t, issuer.Rotate())
		authenticator := newAuthenticator(t, issuer, dial)
		becomesHealthy(t, authenticator)
		assert.NoError(t, authenticate(t, authenticator, issuer, jane(oidc.CurrentKey)))
		assert.NoError(t, authenticate(t, authenticator, issuer, jane(oidc.PreviousKey)), "kept")

		require.NoError(t, issuer.Rotate())
		issuer.DropOldKeys()
		assert.NoError(t, authenticate(t, authenticator, issuer, jane(oidc.PreviousKey)), "dropped, but upstream has not seen it")
		assert.NoError(t, authenticate(t, authenticator, issuer, jane(oidc.CurrentKey)), "fetches the keys again")
		assert.Error(t, authenticate(t, authenticator, issuer, jane(oidc.PreviousKey)))

		require.NoError(t, issuer.Rotate())
		assert.NoError(t, authenticate(t, authenticator, issuer, jane(oidc.PreviousKey)), "kept again")
		assert.NoError(t, authenticate(t, authenticator, issuer, jane(oidc.CurrentKey)))
	})
}

func ofKeys(request oidc.Request) bool { return request.Path == oidc.KeysPath }

// TestIssuerFails has the issuer fail before and after upstream has found it.
func TestIssuerFails(t *testing.T) {
	bubble(t, func(t *testing.T, l net.Listener, dial dialer) {
		issuer := serve(t, l)
		issuer.Requests.Use(oidc.Rule{Times: 1, Answer: func(context.Context, oidc.Request) (oidc.Answer, error) {
			return oidc.Answer{}, stub.Status{Code: 503, Body: []byte("not yet")}
		}})
		began := time.Now()
		authenticator := newAuthenticator(t, issuer, dial)
		synctest.Wait()
		assert.ErrorContains(t, authenticator.HealthCheck(), "503 Service Unavailable: not yet")
		becomesHealthy(t, authenticator)
		assert.Equal(t, 10*time.Second, time.Since(began).Round(time.Second), "the second time")

		for name, failure := range map[string]error{
			"error": errors.New("disk full"), "break": stub.ErrBreak, "garbage": stub.Status{Code: 200, Body: []byte("<html>")},
		} {
			undo := issuer.Requests.Reply(oidc.Answer{}, failure)
			assert.ErrorContains(t, authenticate(t, authenticator, issuer, jane(oidc.CurrentKey)), "fetching keys", name)
			undo()
		}

		gate := issuer.Requests.Hold(ofKeys)
		began = time.Now()
		assert.ErrorContains(t, authenticate(t, authenticator, issuer, jane(oidc.CurrentKey)), "fetching keys")
		assert.Equal(t, 30*time.Second, time.Since(began), "upstream's timeout")
		gate.Open()
		assert.NoError(t, authenticate(t, authenticator, issuer, jane(oidc.CurrentKey)))
	})
}

// TestKeysMayBeCached has upstream refuse a new key while it may cache the old ones.
func TestKeysMayBeCached(t *testing.T) {
	bubble(t, func(t *testing.T, l net.Listener, dial dialer) {
		issuer := serve(t, l)
		issuer.Requests.Use(oidc.Rule{When: ofKeys, Answer: func(_ context.Context, request oidc.Request) (oidc.Answer, error) {
			answer, err := issuer.Document(request.Path)
			answer.Header.Set("Cache-Control", "max-age=3600")
			return answer, err
		}})
		authenticator := newAuthenticator(t, issuer, dial)
		becomesHealthy(t, authenticator)
		require.NoError(t, authenticate(t, authenticator, issuer, jane(oidc.CurrentKey)))
		require.NoError(t, issuer.Rotate())
		assert.ErrorContains(t, authenticate(t, authenticator, issuer, jane(oidc.CurrentKey)), "failed to verify")
		time.Sleep(time.Hour)
		assert.NoError(t, authenticate(t, authenticator, issuer, jane(oidc.CurrentKey)))
	})
}

func TestDocuments(t *testing.T) {
	everywhere(t, func(t *testing.T, l net.Listener, dial dialer) {
		issuer := serve(t, l)
		client := newClient(t, issuer, dial)
		get := func(path string) (int, string) {
			resp, err := client.Get(issuer.URL() + path)
			require.NoError(t, err)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			return resp.StatusCode, string(body)
		}
		code, body := get(oidc.DiscoveryPath)
		assert.Equal(t, 200, code)
		assert.JSONEq(t, `{"issuer":"`+issuer.URL()+`","jwks_uri":"`+issuer.URL()+`/keys","response_types_supported":["id_token"],
			"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}`, body)
		_, body = get(oidc.KeysPath)
		assert.Contains(t, body, `"kid":"key-1"`)
		assert.NotContains(t, body, `"d":`, "the private key")
		code, body = get("/token")
		assert.Equal(t, 404, code)
		assert.Equal(t, "there is no /token, only /.well-known/openid-configuration and /keys\n", body)

		resp, err := client.Post(issuer.URL()+oidc.KeysPath, "text/plain", nil)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, 405, resp.StatusCode)
		calls := issuer.Requests.Calls()
		require.Len(t, calls, 4)
		assert.EqualError(t, calls[3].Err, "the method is POST, want GET")
	})
}

// TestDeterministic has two issuers with the same randomness make the same token.
func TestDeterministic(t *testing.T) {
	var tokens []string
	for _, seed := range []uint64{1, 1, 2} {
		t.Run("", func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, seed)
			bubble(t, func(t *testing.T, l net.Listener, _ dialer) {
				token, err := serve(t, l).Issue(jane(oidc.CurrentKey))
				require.NoError(t, err)
				tokens = append(tokens, token)
			})
		})
	}
	assert.Equal(t, tokens[0], tokens[1])
	assert.NotEqual(t, tokens[0], tokens[2], "the signature depends on the seed")
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(tokens[0], ".")[1])
	require.NoError(t, err)
	assert.Equal(t, `{"aud":"api","exp":946688400,"groups":["dev"],"iat":946684800,"iss":"https://127.0.0.1","sub":"jane"}`, string(payload))
}

// TestExpiredToken was issued before it expired.
func TestExpiredToken(t *testing.T) {
	bubble(t, func(t *testing.T, l net.Listener, _ dialer) {
		token, err := serve(t, l).Issue(oidc.Token{Lifetime: -time.Minute})
		require.NoError(t, err)
		payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
		require.NoError(t, err)
		assert.Equal(t, `{"exp":946684740,"iat":946681140,"iss":"https://127.0.0.1","sub":""}`, string(payload))
	})
}

func TestBadTokens(t *testing.T) {
	issuer := serve(t, memnet.Listen())
	_, err := issuer.Issue(oidc.Token{Claims: map[string]any{"f": func() {}}})
	assert.ErrorContains(t, err, "encode the claims of a token: json: unsupported type")
	_, err = issuer.Issue(oidc.Token{Key: 99})
	assert.EqualError(t, err, "sign a token with key 99: there is no such kind of key")
}
