package envtest_test

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"snowglobe.test/envtest"
	"snowglobe.test/fakes/aggregated"
	"snowglobe.test/internal/pki"
)

// trustOf is what a control plane tells aggregated API servers to trust.
func trustOf(t *testing.T, h *httpTest) map[string]string {
	t.Helper()
	published, err := h.client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
	require.NoError(t, err)
	return published.Data
}

// TestFrontProxy has the aggregator known to a server that trusts what is published for it and lets
// no other client in, as those made with k8s.io/apiserver do.
func TestFrontProxy(t *testing.T) {
	h := newHTTPTest(t, envtest.Start(t))
	trust := trustOf(t, h)
	assert.Equal(t, map[string]string{
		"requestheader-allowed-names": `["front-proxy-client"]`, "requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		"requestheader-group-headers": `["X-Remote-Group"]`, "requestheader-uid-headers": `["X-Remote-Uid"]`, "requestheader-username-headers": `["X-Remote-User"]`,
		"client-ca-file": trust["client-ca-file"], "requestheader-client-ca-file": trust["requestheader-client-ca-file"],
	}, trust)
	var names []string
	require.NoError(t, json.Unmarshal([]byte(trust["requestheader-allowed-names"]), &names))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	things, err := aggregated.Serve(listener, aggregated.Config{
		Resources:    []aggregated.Resource{{Group: "things.example.com", Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true}},
		FrontProxyCA: []byte(trust["requestheader-client-ca-file"]), FrontProxyNames: names,
	})
	require.NoError(t, err)
	defer func() { assert.NoError(t, things.Stop(context.Background())) }()
	_, err = things.Put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "things.example.com/v1", "kind": "Thing", "metadata": map[string]any{"namespace": "default", "name": "a"},
	}})
	require.NoError(t, err)
	installAPIService(h, things.URL())
	assert.NotEqual(t, trust["client-ca-file"], trust["requestheader-client-ca-file"], "users are no front proxies")
}

// TestFrontProxyOfFlags leaves to flags what they say any of.
func TestFrontProxyOfFlags(t *testing.T) {
	h := newHTTPTest(t, envtest.Start(t, envtest.WithFlags("--requestheader-client-ca-file=")))
	for name := range trustOf(t, h) {
		assert.False(t, strings.HasPrefix(name, "requestheader-"), name)
	}
}

// TestCertificateFiles names files of certificates by flags in virtual time, where they are looked at
// now and then; upstream has the operating system tell it of changes, for which time would stand still.
func TestCertificateFiles(t *testing.T) {
	dir := t.TempDir()
	var authorities []*pki.Authority
	for range 2 {
		authority, err := pki.NewAuthority("front-proxies")
		require.NoError(t, err)
		authorities = append(authorities, authority)
	}
	pair, err := authorities[0].Serving("api.example")
	require.NoError(t, err)
	cert, key := writeFile(t, filepath.Join(dir, "tls.crt"), string(pair.Cert)), writeFile(t, filepath.Join(dir, "tls.key"), string(pair.Key))
	ca := writeFile(t, filepath.Join(dir, "ca.crt"), string(authorities[0].CertPEM()))
	envtest.Simulate(t, func(t *testing.T, cp *envtest.ControlPlane) {
		h := newHTTPTest(t, cp)
		trusts := func() string { return trustOf(t, h)["requestheader-client-ca-file"] }
		time.Sleep(time.Minute)
		assert.Equal(t, string(authorities[0].CertPEM()), trusts())
		writeFile(t, ca, string(authorities[1].CertPEM()))
		time.Sleep(time.Minute)
		assert.Contains(t, trusts(), string(authorities[1].CertPEM()))
		assert.NoError(t, cp.Servers()[0].Crash(t.Context()), "what looks at files ends")
	}, envtest.WithFlags("--tls-cert-file="+cert, "--tls-private-key-file="+key, "--tls-sni-cert-key="+cert+","+key, "--requestheader-client-ca-file="+ca,
		"--requestheader-allowed-names=proxy", "--requestheader-username-headers=X-Remote-User", "--proxy-client-cert-file="+cert, "--proxy-client-key-file="+key))
}
