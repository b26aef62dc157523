package external_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/external"
	"snowglobe.test/envtest/storage/storagetest"
	"snowglobe.test/internal/pki"
)

// files are the TLS files of one authority.
type files struct{ ca, serverCert, serverKey, clientCert, clientKey string }

func newFiles(t *testing.T) files {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	authority, err := pki.NewAuthority("etcd")
	require.NoError(t, err)
	server, err := authority.Serving("127.0.0.1")
	require.NoError(t, err)
	client, err := authority.Client("apiserver")
	require.NoError(t, err)
	return files{
		ca:         write("ca.crt", authority.CertPEM()),
		serverCert: write("server.crt", server.Cert), serverKey: write("server.key", server.Key),
		clientCert: write("client.crt", client.Cert), clientKey: write("client.key", client.Key),
	}
}

// startTLS starts an etcd that requires client certificates, and returns its URL.
func startTLS(t *testing.T, f files) string {
	t.Helper()
	dir := t.TempDir()
	cfg := embed.NewConfig()
	cfg.Dir, cfg.UnsafeNoFsync, cfg.EnableGRPCGateway = filepath.Join(dir, "data"), true, false
	cfg.LogLevel = "panic"
	cfg.ClientTLSInfo = transport.TLSInfo{CertFile: f.serverCert, KeyFile: f.serverKey, TrustedCAFile: f.ca, ClientCertAuth: true}
	somewhere := url.URL{Scheme: "https", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{somewhere}, []url.URL{somewhere}
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	server, err := embed.StartEtcd(cfg)
	require.NoError(t, err)
	t.Cleanup(server.Close)
	select {
	case <-server.Server.ReadyNotify():
	case <-time.After(time.Minute):
		t.Fatal("etcd is not ready after a minute")
	}
	return "https://" + server.Clients[0].Addr().String()
}

func TestTLS(t *testing.T) {
	ours := newFiles(t)
	secure := startTLS(t, ours)
	theirs := newFiles(t)
	const nobody = "https://127.0.0.1:1"
	for name, c := range map[string]struct {
		cfg  external.Config
		want []string // parts of the error; nil if there is none
	}{
		"right":               {external.Config{URLs: []string{secure}, CAFile: ours.ca, CertFile: ours.clientCert, KeyFile: ours.clientKey}, nil},
		"one of several":      {external.Config{URLs: []string{nobody, secure}, CAFile: ours.ca, CertFile: ours.clientCert, KeyFile: ours.clientKey}, nil},
		"nobody there":        {external.Config{URLs: []string{nobody, "https://127.0.0.1:2"}, CAFile: ours.ca}, []string{"https://127.0.0.1:1: ", "https://127.0.0.1:2: ", "connection refused; is etcd running there?"}},
		"wrong CA":            {external.Config{URLs: []string{secure}, CAFile: theirs.ca, CertFile: ours.clientCert, KeyFile: ours.clientKey}, []string{"unknown authority", "is CAFile the authority of the server's certificate"}},
		"no CA":               {external.Config{URLs: []string{secure}, CertFile: ours.clientCert, KeyFile: ours.clientKey}, []string{"unknown authority", "is CAFile"}},
		"no files":            {external.Config{URLs: []string{secure}}, []string{"unknown authority", "is CAFile"}},
		"no client":           {external.Config{URLs: []string{secure}, CAFile: ours.ca}, []string{"certificate required", "CertFile and KeyFile"}},
		"wrong client":        {external.Config{URLs: []string{secure}, CAFile: ours.ca, CertFile: theirs.clientCert, KeyFile: theirs.clientKey}, []string{"wants another client certificate"}},
		"https to plain text": {external.Config{URLs: []string{"https://" + listenPlain(t)}, CAFile: ours.ca}, []string{"does not speak TLS"}},
		"no socket":           {external.Config{URLs: []string{"unix:///nowhere/etcd.sock"}}, []string{"unix:///nowhere/etcd.sock: ", "is etcd running there?"}},
		"no such file":        {external.Config{URLs: []string{secure}, CAFile: filepath.Join(t.TempDir(), "none")}, []string{"external store: TLS files: ", "no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.want != nil {
				c.cfg.DialTimeout = time.Second
			}
			store, err := external.New(c.cfg)
			require.NoError(t, err)
			err = store.Start(context.Background())
			if c.want == nil {
				require.NoError(t, err)
				writeAndRead(t, store)
				return
			}
			require.ErrorContains(t, err, "external store: ")
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// writeAndRead writes through the store's client and reads through its endpoints.
func writeAndRead(t *testing.T, store storage.Backend) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := storagetest.ByClient(store)
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	_, err = client.Put(ctx, t.Name(), "value")
	require.NoError(t, err)
	other, err := storagetest.ByEndpoints(store)
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	got, err := other.KV.Get(ctx, t.Name())
	require.NoError(t, err)
	assert.EqualValues(t, 1, got.Count)
}

func TestNewRefuses(t *testing.T) {
	for want, cfg := range map[string]external.Config{
		"no endpoint given":            {},
		"is not an etcd URL":           {URLs: []string{"localhost:2379"}},
		"needs both":                   {URLs: []string{"https://localhost:2379"}, CertFile: "client.crt"},
		"is plain text, but TLS files": {URLs: []string{"https://localhost:2379", "http://localhost:2379"}, CAFile: "ca.crt"},
	} {
		_, err := external.New(cfg)
		require.ErrorContains(t, err, want)
	}
}

// listenPlain listens and answers every connection in plain text.
func listenPlain(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}
