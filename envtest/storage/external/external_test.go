package external_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/external"
	"snowglobe.test/internal/pages"
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
	const refusing = "https://127.0.0.1:1"
	for name, c := range map[string]struct {
		cfg  external.Config
		want []string // parts of the error; nil if there is none
	}{
		"right":               {external.Config{URLs: []string{secure}, CAFile: ours.ca, CertFile: ours.clientCert, KeyFile: ours.clientKey}, nil},
		"one of several":      {external.Config{URLs: []string{refusing, secure}, CAFile: ours.ca, CertFile: ours.clientCert, KeyFile: ours.clientKey}, nil},
		"no etcd there":       {external.Config{URLs: []string{refusing, "https://127.0.0.1:2"}, CAFile: ours.ca}, []string{"https://127.0.0.1:1: ", "https://127.0.0.1:2: ", "connection refused; is etcd running there?"}},
		"wrong CA":            {external.Config{URLs: []string{secure}, CAFile: theirs.ca, CertFile: ours.clientCert, KeyFile: ours.clientKey}, []string{"unknown authority", "; is CAFile (up --etcd-cafile) the authority of the server's certificate, and is that valid for this host?"}},
		"no CA":               {external.Config{URLs: []string{secure}, CertFile: ours.clientCert, KeyFile: ours.clientKey}, []string{"unknown authority", "is CAFile"}},
		"no files":            {external.Config{URLs: []string{secure}}, []string{"unknown authority", "is CAFile"}},
		"no client":           {external.Config{URLs: []string{secure}, CAFile: ours.ca}, []string{"certificate required", "CertFile and KeyFile"}},
		"wrong client":        {external.Config{URLs: []string{secure}, CAFile: ours.ca, CertFile: theirs.clientCert, KeyFile: theirs.clientKey}, []string{"; the server wants another client certificate, or needs one: set CertFile and KeyFile (up --etcd-certfile and --etcd-keyfile)"}},
		"https to plain text": {external.Config{URLs: []string{"https://" + listenPlain(t)}, CAFile: ours.ca}, []string{"; the server does not speak TLS: write the URL with http://"}},
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
			require.NotContains(t, err.Error(), "\n")
			if strings.Contains(err.Error(), "no answer within 1s (DialTimeout, or a third of --start-timeout, gives it longer) from ") {
				pages.Troubleshooting(t, "../../..", err.Error())
			}
		})
	}
}

// writeAndRead writes through the store's client and reads through its endpoints.
func writeAndRead(t *testing.T, store storage.Backend) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := store.Client()
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	_, err = client.Put(ctx, t.Name(), "value")
	require.NoError(t, err)
	endpoints := store.Endpoints()
	cfg := clientv3.Config{Endpoints: endpoints.URLs, Logger: zap.NewNop()}
	cfg.TLS, err = transport.TLSInfo{CertFile: endpoints.CertFile, KeyFile: endpoints.KeyFile, TrustedCAFile: endpoints.CAFile}.ClientConfig()
	require.NoError(t, err)
	other, err := clientv3.New(cfg)
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	got, err := other.Get(ctx, t.Name())
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
