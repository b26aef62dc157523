package aggregated_test

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/aggregated"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/internal/pki"
)

// TestSick makes the server ill in all ways that the package comment speaks of.
func TestSick(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		client := w.dynamic().Resource(widgets)
		healthy := func() {
			t.Helper()
			_, err := client.List(t.Context(), metav1.ListOptions{})
			assert.NoError(t, err)
		}
		remove := w.Requests.Reply(nil, stub.Status{Code: http.StatusServiceUnavailable})
		_, err := client.List(t.Context(), metav1.ListOptions{})
		assert.True(t, apierrors.IsServiceUnavailable(err), err)
		remove()
		healthy()

		remove = w.Requests.Reply(nil, stub.Status{Code: http.StatusFound, Header: http.Header{"Location": {w.URL() + "/elsewhere"}}})
		response, err := w.client.Transport.RoundTrip(request(t, w, "/apis/example.com/v1"))
		require.NoError(t, err)
		assert.Equal(t, []any{http.StatusFound, w.URL() + "/elsewhere"}, []any{response.StatusCode, response.Header.Get("Location")})
		assert.NoError(t, response.Body.Close())
		remove()

		remove = w.Requests.Reply(nil, stub.Status{Code: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<html>")})
		_, err = client.List(t.Context(), metav1.ListOptions{})
		assert.Error(t, err)
		remove()

		remove = w.Requests.Reply(nil, stub.ErrBreak)
		_, err = client.List(t.Context(), metav1.ListOptions{})
		assert.Error(t, err)
		remove()

		remove = w.Requests.Reply(nil, nil)
		_, err = client.List(t.Context(), metav1.ListOptions{})
		assert.ErrorContains(t, err, "neither a handler nor an error")
		remove()

		remove = w.Requests.Reply(nil, apierrors.NewTooManyRequests("later", 7))
		code, body := w.answer("GET", "/apis/example.com/v1/widgets", "")
		assert.Equal(t, 429, code, body)
		remove()

		remove = w.Requests.Reply(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), nil)
		code, _ = w.answer("GET", "/apis", "")
		assert.Equal(t, http.StatusTeapot, code)
		remove()

		w.Requests.Use(stub.Rule[aggregated.Request, http.Handler]{Name: "slow", Times: 1, Delay: 10 * time.Millisecond})
		began := time.Now()
		healthy()
		assert.GreaterOrEqual(t, time.Since(began), 10*time.Millisecond)
	})
}

func request(t *testing.T, w *world, path string) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), "GET", w.URL()+path, nil)
	require.NoError(t, err)
	return r
}

func TestWrongCA(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		ca, err := w.WrongCA()
		require.NoError(t, err)
		config := rest.CopyConfig(w.config)
		config.CAData = ca
		client, err := rest.HTTPClientFor(config)
		require.NoError(t, err)
		_, err = client.Do(request(t, w, "/apis"))
		var unknown x509.UnknownAuthorityError
		assert.ErrorAs(t, err, &unknown)
		client.CloseIdleConnections()
	})
}

// TestIdentity records for whom the aggregator acts, and believes it only if it has to.
func TestIdentity(t *testing.T) {
	ours, err := pki.NewAuthority("front-proxy-ca")
	require.NoError(t, err)
	theirs, err := pki.NewAuthority("strangers")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		authority *pki.Authority
		name      string
		code      int
	}{
		"trusted": {ours, "front-proxy-client", 200}, "stranger": {theirs, "front-proxy-client", 401},
		"another name": {ours, "mallory", 401}, "no client certificate": {nil, "", 401},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			w := newWorld(t, l, aggregated.Config{
				Resources: resources, FrontProxyCA: ours.CertPEM(), FrontProxyNames: []string{"front-proxy-client"},
			})
			if c.authority != nil {
				pair, err := c.authority.Client(c.name)
				require.NoError(t, err)
				w.config.CertData, w.config.KeyData = pair.Cert, pair.Key
				w.client, err = rest.HTTPClientFor(w.config)
				require.NoError(t, err)
			}
			code, _ := w.answer("GET", "/apis/example.com/v1/namespaces/default/widgets?watch=0", "",
				"X-Remote-User", "jane", "X-Remote-Uid", "7", "X-Remote-Group", "developers", "X-Remote-Group", "system:authenticated",
				"X-Remote-Extra-Example.com%2Fscopes", "read", "X-Remote-Extra-Bad%", "kept")
			assert.Equal(t, c.code, code)
			call := w.Requests.Calls()[0]
			r := call.Request
			assert.Equal(t, []string{"jane", "7"}, []string{r.User, r.UID})
			assert.Equal(t, []string{"developers", "system:authenticated"}, r.Groups)
			assert.Equal(t, map[string][]string{"example.com/scopes": {"read"}, "bad%": {"kept"}}, r.Extra)
			assert.Equal(t, []string{"list", "example.com", "v1", "widgets", "default"}, []string{r.Verb, r.Group, r.Version, r.Resource, r.Namespace})
			if c.code == 200 {
				assert.Equal(t, "front-proxy-client", r.FrontProxy)
			} else {
				assert.ErrorContains(t, call.Err, "the aggregator is not to be trusted")
			}
			w.end()
		})
	}
}

func TestServeRefuses(t *testing.T) {
	good := aggregated.Resource{Group: "g", Version: "v1", Plural: "things", Kind: "Thing"}
	with := func(change func(*aggregated.Resource)) []aggregated.Resource {
		bad := good
		change(&bad)
		return []aggregated.Resource{good, bad}
	}
	for want, config := range map[string]aggregated.Config{
		"there are no Resources": {},
		`Resources[1]: group "g", version "v1", plural "" and kind "Thing": none of them may be empty`: {Resources: with(func(r *aggregated.Resource) { r.Plural = "" })},
		`Resources[1]: plural "Things": it must be in lower case`:                                      {Resources: with(func(r *aggregated.Resource) { r.Plural = "Things" })},
		"Resources[1]: things of g/v1 are in Resources[0] already":                                     {Resources: with(func(*aggregated.Resource) {})},
		"Resources[1]: things of group g differ in kind or scope from those in Resources[0]":           {Resources: with(func(r *aggregated.Resource) { r.Version, r.Namespaced = "v2", true })},
		"Resources[1].Columns[0]: it needs a Name and a Cell": {Resources: with(func(r *aggregated.Resource) {
			r.Plural, r.Columns = "others", []aggregated.Column{{}}
		})},
		"BookmarkInterval is -1s":           {Resources: []aggregated.Resource{good}, BookmarkInterval: -time.Second},
		"FrontProxyNames are no protection": {Resources: []aggregated.Resource{good}, FrontProxyNames: []string{"front-proxy-client"}},
		"FrontProxyCA":                      {Resources: []aggregated.Resource{good}, FrontProxyCA: []byte("no PEM")},
	} {
		l := memnet.Listen()
		_, err := aggregated.Serve(l, config)
		assert.ErrorContains(t, err, want)
		_, err = l.DialContext(context.Background())
		assert.ErrorIs(t, err, net.ErrClosed, "the listener is closed")
	}
}
