package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"snowglobe.test/envtest/memnet"
)

func TestMain(m *testing.M) {
	// They wait for a moment after the last error. In a bubble, whose time begins in the
	// year 2000, that is until some time after the last one outside.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}

// place is where a fake listens, and how clients dial it.
type place struct {
	net.Listener
	dial utilnet.DialFunc // nil for that of the machine
}

func memory() place {
	l := memnet.Listen()
	return place{l, l.DialNetwork}
}

func socket(t *testing.T) place {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return place{l, nil}
}

// everywhere runs a test on a loopback socket and in a bubble of virtual time.
func everywhere(t *testing.T, test func(*testing.T, place)) {
	t.Run("socket", func(t *testing.T) { test(t, socket(t)) })
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, memory()) })
	})
}

type stopper interface{ Stop(context.Context) error }

func stopAtEnd(t *testing.T, fake stopper) {
	t.Helper()
	t.Cleanup(func() { assert.NoError(t, fake.Stop(context.Background())) })
}

// restConfig is what the API server makes of a kubeconfig.
func restConfig(t *testing.T, kubeconfig []byte, dial utilnet.DialFunc) *rest.Config {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	require.NoError(t, err)
	config.Dial = dial
	return config
}

// rawClient sends requests that no API server would.
func rawClient(t *testing.T, ca []byte, p place) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(ca))
	transport := &http.Transport{DialContext: p.dial, TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// badRequest is one that a webhook refuses.
type badRequest struct {
	name        string
	method      string // POST if empty
	contentType string // application/json if empty
	body        string
	code        int // 400 if 0
	want        string
}

// refuses sends requests to a webhook and checks the answers and what is recorded.
func refuses(t *testing.T, url string, client *http.Client, requests []badRequest, recorded func() (calls int, last error)) {
	t.Helper()
	for i, c := range requests {
		if c.method == "" {
			c.method = http.MethodPost
		}
		if c.contentType == "" {
			c.contentType = "application/json"
		}
		if c.code == 0 {
			c.code = http.StatusBadRequest
		}
		request, err := http.NewRequestWithContext(t.Context(), c.method, url, strings.NewReader(c.body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", c.contentType)
		resp, err := client.Do(request)
		require.NoError(t, err, c.name)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err, c.name)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, c.code, resp.StatusCode, c.name)
		assert.Contains(t, string(body), c.want, c.name)
		calls, last := recorded()
		assert.Equal(t, i+1, calls, c.name)
		assert.ErrorContains(t, last, c.want, c.name)
	}
}

// badEnvelopes are requests that all webhooks refuse.
func badEnvelopes(apiVersion, kind, hint string) []badRequest {
	return []badRequest{
		{name: "method", method: http.MethodGet, code: 405, want: "the method is GET, want POST"},
		{name: "content type", contentType: "application/vnd.kubernetes.protobuf", body: "{}", code: 415,
			want: `the content type is "application/vnd.kubernetes.protobuf", want application/json`},
		{name: "nothing", want: "the body is not a JSON object"},
		{name: "garbage", body: "\x00\x01", want: "the body is not a JSON object"},
		{name: "array", body: "[]", want: "the body is not a JSON object"},
		{name: "no kind", body: "{}", want: `the body is "" "", want ` + apiVersion + " " + kind + ": configure the API server with " + hint},
		{name: "old version", body: `{"apiVersion":"` + strings.Replace(apiVersion, "/v1", "/v1beta1", 1) + `","kind":"` + kind + `"}`, want: hint},
		{name: "other kind", body: `{"apiVersion":"` + apiVersion + `","kind":"Other"}`, want: "want " + apiVersion + " " + kind},
		{name: "unknown field", body: `{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","field":1}`,
			want: "the body is no valid " + kind + `: strict decoding error: unknown field "field"`},
		{name: "field twice", body: `{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","metadata":{},"metadata":{}}`, want: "strict decoding error"},
	}
}
