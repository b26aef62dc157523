package envtest_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"snowglobe.test/envtest"
)

// trustOf is what a control plane tells aggregated API servers to trust.
func trustOf(t *testing.T, h *httpTest) map[string]string {
	t.Helper()
	published, err := h.client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
	require.NoError(t, err)
	return published.Data
}

// TestFrontProxy has the aggregator known to a server that lets nobody else in, as those made with
// k8s.io/apiserver are.
func TestFrontProxy(t *testing.T) {
	h := newHTTPTest(t, envtest.Start(t))
	trust := trustOf(t, h)
	assert.Equal(t, map[string]string{
		"requestheader-allowed-names": `["front-proxy-client"]`, "requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		"requestheader-group-headers": `["X-Remote-Group"]`, "requestheader-uid-headers": `["X-Remote-Uid"]`, "requestheader-username-headers": `["X-Remote-User"]`,
		"client-ca-file": trust["client-ca-file"], "requestheader-client-ca-file": trust["requestheader-client-ca-file"],
	}, trust)
	authorities := x509.NewCertPool()
	require.True(t, authorities.AppendCertsFromPEM([]byte(trust["requestheader-client-ca-file"])))
	things := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		assert.Equal(t, "front-proxy-client", req.TLS.PeerCertificates[0].Subject.CommonName)
		serveThings(w, req)
	}))
	things.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authorities}
	things.StartTLS()
	defer things.Close()
	installAPIService(h, &outsider{Server: things})
	assert.NotEqual(t, trust["client-ca-file"], trust["requestheader-client-ca-file"], "users are no front proxies")
}

// TestFrontProxyOfFlags leaves to flags what they say any of.
func TestFrontProxyOfFlags(t *testing.T) {
	h := newHTTPTest(t, envtest.Start(t, envtest.WithFlags("--requestheader-client-ca-file=")))
	for name := range trustOf(t, h) {
		assert.False(t, strings.HasPrefix(name, "requestheader-"), name)
	}
}
