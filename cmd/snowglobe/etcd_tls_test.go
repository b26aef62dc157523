package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"

	"snowglobe.test/cmd/snowglobe/etcdmain"
	"snowglobe.test/envtest/serverflags"
	"snowglobe.test/envtest/storage/external"
	"snowglobe.test/internal/pki"
)

// etcdFiles are the files of one authority, and of a server and a client that it signed.
type etcdFiles struct {
	ca, serverCert, serverKey, clientCert, clientKey string
}

func newEtcdFiles(t *testing.T) etcdFiles {
	t.Helper()
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	authority, err := pki.NewAuthority("etcd")
	require.NoError(t, err)
	server, err := authority.Serving("127.0.0.1")
	require.NoError(t, err)
	client, err := authority.Client("apiserver")
	require.NoError(t, err)
	return etcdFiles{
		write("ca.crt", authority.CertPEM()), write("server.crt", server.Cert), write("server.key", server.Key),
		write("client.crt", client.Cert), write("client.key", client.Key),
	}
}

// server are the flags of an etcd that wants client certificates.
func (f etcdFiles) server() []string {
	return []string{"--cert-file=" + f.serverCert, "--key-file=" + f.serverKey, "--trusted-ca-file=" + f.ca, "--client-cert-auth"}
}

// config is that of a client with the certificate.
func (f etcdFiles) config(endpoint string) external.Config {
	return external.Config{URLs: []string{endpoint}, CAFile: f.ca, CertFile: f.clientCert, KeyFile: f.clientKey, DialTimeout: waitTimeout}
}

// refusalTimeout is how long a client tries that is refused.
const refusalTimeout = 2 * time.Second

// put writes a key to an etcd.
func put(ctx context.Context, t *testing.T, cfg external.Config) error {
	t.Helper()
	store, err := external.New(cfg)
	require.NoError(t, err)
	if err := store.Start(ctx); err != nil {
		return err
	}
	client, err := store.Client()
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	_, err = client.Put(ctx, "flake", "falls")
	return err
}

// TestEtcdTLS admits clients with a certificate of the authority, and no others, by gRPC
// and by HTTP.
func TestEtcdTLS(t *testing.T) {
	t.Parallel() // it waits for refusals
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	files, strangers := newEtcdFiles(t), newEtcdFiles(t)
	served := executeEtcd(ctx, t, "127.0.0.1:0", files.server()...)
	require.Contains(t, served.endpoint, "https://127.0.0.1:")

	require.NoError(t, put(ctx, t, files.config(served.endpoint)))
	anonymous := external.Config{URLs: []string{served.endpoint}, CAFile: files.ca, DialTimeout: refusalTimeout}
	require.ErrorContains(t, put(ctx, t, anonymous), "certificate required")
	stranger := anonymous
	stranger.CertFile, stranger.KeyFile = strangers.clientCert, strangers.clientKey
	require.ErrorContains(t, put(ctx, t, stranger), "wants another client certificate")
	_, err := http.Get("http://" + strings.TrimPrefix(served.endpoint, "https://") + "/health")
	require.Error(t, err, "plain text")

	config, err := transport.TLSInfo{CertFile: files.clientCert, KeyFile: files.clientKey, TrustedCAFile: files.ca}.ClientConfig()
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	health, err := client.Get(served.endpoint + "/health")
	require.NoError(t, err)
	require.NoError(t, health.Body.Close())
	require.Equal(t, http.StatusOK, health.StatusCode, "also for who would speak HTTP/2")

	interrupt(errInterrupted)
	require.Equal(t, exitOK, <-served.code)
	require.Contains(t, <-served.rest, "Only clients with a certificate of the authority in "+files.ca)
}

func TestEtcdTLSRefuses(t *testing.T) {
	files := newEtcdFiles(t)
	for want, flags := range map[string][]string{
		"belong together":              {"--cert-file", files.serverCert},
		"give --cert-file and --key":   {"--trusted-ca-file", files.ca},
		"client certificates need TLS": {"--client-cert-auth"},
		"needs --trusted-ca-file":      {"--cert-file", files.serverCert, "--key-file", files.serverKey, "--client-cert-auth"},
		"a unix socket has no TLS":     {"--listen", unixScheme + filepath.Join(t.TempDir(), "s"), "--cert-file", files.serverCert, "--key-file", files.serverKey},
	} {
		var stderr strings.Builder
		assert.Equal(t, exitUnjudged, execute(t.Context(), append([]string{"etcd"}, flags...), io.Discard, &stderr), want)
		assert.Contains(t, stderr.String(), want)
	}
	var stderr strings.Builder
	missing := []string{"etcd", "--listen", "127.0.0.1:0", "--cert-file", filepath.Join(t.TempDir(), "none"), "--key-file", files.serverKey}
	assert.Equal(t, exitUnjudged, execute(t.Context(), missing, io.Discard, &stderr))
	assert.Contains(t, stderr.String(), "TLS: open ")
}

// TestEtcdStandInTLS runs etcd and kube-apiserver of "assets" with the originals' flags.
func TestEtcdStandInTLS(t *testing.T) {
	t.Parallel() // it waits for refusals
	files := newEtcdFiles(t)
	port, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint := "https://" + port.Addr().String()
	require.NoError(t, port.Close())
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- etcdmain.Run(ctx, append(files.server(), "--listen-client-urls="+endpoint, "--advertise-client-urls="+endpoint,
			"--peer-cert-file="+files.serverCert, "--peer-key-file="+files.serverKey, "--peer-trusted-ca-file="+files.ca, "--peer-client-cert-auth",
			"--tls-min-version=TLS1.3"), io.Discard, io.Discard)
	}()
	defer func() {
		interrupt()
		assert.NoError(t, <-ended)
	}()
	require.NoError(t, put(ctx, t, files.config(endpoint)))
	anonymous := external.Config{URLs: []string{endpoint}, CAFile: files.ca, DialTimeout: refusalTimeout}
	require.ErrorContains(t, put(ctx, t, anonymous), "certificate required")

	process, err := serverflags.ParseProcess(append(apiServerArgs(t, endpoint), "--etcd-cafile="+files.ca, "--etcd-certfile="+files.clientCert, "--etcd-keyfile="+files.clientKey))
	require.NoError(t, err)
	options, err := apiServerOptions(process)
	require.NoError(t, err)
	assert.NotEmpty(t, options)
}

// TestUpTLS runs an API server on an etcd that wants client certificates.
func TestUpTLS(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	defer interrupt(nil)
	files := newEtcdFiles(t)
	served := executeEtcd(ctx, t, "127.0.0.1:0", files.server()...)
	greeting, stop := launchUp(t, "--kubeconfig", filepath.Join(t.TempDir(), "kubeconfig"), "--store", served.endpoint,
		"--etcd-cafile", files.ca, "--etcd-certfile", files.clientCert, "--etcd-keyfile", files.clientKey)
	assert.Contains(t, greeting, "is up at https://127.0.0.1:")
	stop()

	var stderr strings.Builder
	assert.Equal(t, exitUnjudged, execute(ctx, []string{"up", "--etcd-cafile", files.ca}, io.Discard, &stderr))
	assert.Contains(t, stderr.String(), `--etcd-cafile, --etcd-certfile and --etcd-keyfile are for a --store at https; store "memory" has no TLS`)
}
