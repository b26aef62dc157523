package konnectivity_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/klog/v2"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/konnectivity"
	"snowglobe.test/internal/pki"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // upstream's client complains of what is broken off here
	goleak.VerifyTestMain(m)
}

// way is a way through a proxy, which serves it for that.
type way struct {
	name     string
	protocol string
	bubble   bool
	// patient says that dials go on when their context ends.
	patient bool
	serve   func(t *testing.T, p *konnectivity.Proxy) konnectivity.DialFunc
}

var ways = []way{
	{"HTTPConnect over TCP", konnectivity.HTTPConnect, false, true, overTCP},
	{"HTTPConnect over UDS", konnectivity.HTTPConnect, false, true, overUDS(apiserver.ProtocolHTTPConnect, (*konnectivity.Proxy).ServeConnect)},
	{"GRPC over UDS", konnectivity.GRPC, false, false, overUDS(apiserver.ProtocolGRPC, (*konnectivity.Proxy).ServeGRPC)},
	{"HTTPConnect in memory", konnectivity.HTTPConnect, true, false, func(_ *testing.T, p *konnectivity.Proxy) konnectivity.DialFunc {
		l := memnet.Listen()
		p.ServeConnect(l)
		return konnectivity.DialConnect(l.DialContext)
	}},
	{"HTTPConnect with TLS in memory", konnectivity.HTTPConnect, true, false, func(t *testing.T, p *konnectivity.Proxy) konnectivity.DialFunc {
		l := memnet.Listen()
		ca, err := p.ServeConnectTLS(l, "proxy")
		require.NoError(t, err)
		pool := x509.NewCertPool()
		require.True(t, pool.AppendCertsFromPEM(ca))
		return konnectivity.DialConnect(func(ctx context.Context) (net.Conn, error) {
			conn, err := l.DialContext(ctx)
			if err != nil {
				return nil, err
			}
			return tls.Client(conn, &tls.Config{RootCAs: pool, ServerName: "proxy"}), nil
		})
	}},
	{"GRPC in memory", konnectivity.GRPC, true, false, func(_ *testing.T, p *konnectivity.Proxy) konnectivity.DialFunc {
		l := memnet.Listen()
		p.ServeGRPC(l)
		return konnectivity.DialGRPC(l.DialContext)
	}},
}

// overTCP is upstream's egress selector with TLS and a certificate.
func overTCP(t *testing.T, p *konnectivity.Proxy) konnectivity.DialFunc {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ca, err := p.ServeConnectTLS(l, "127.0.0.1")
	require.NoError(t, err)
	authority, err := pki.NewAuthority("clients")
	require.NoError(t, err)
	pair, err := authority.Client("kube-apiserver", "system:masters")
	require.NoError(t, err)
	dir := t.TempDir()
	for name, data := range map[string][]byte{"ca": ca, "cert": pair.Cert, "key": pair.Key} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return selected(t, apiserver.Connection{ProxyProtocol: apiserver.ProtocolHTTPConnect, Transport: &apiserver.Transport{TCP: &apiserver.TCPTransport{
		URL:       "https://" + l.Addr().String(),
		TLSConfig: &apiserver.TLSConfig{CABundle: filepath.Join(dir, "ca"), ClientCert: filepath.Join(dir, "cert"), ClientKey: filepath.Join(dir, "key")},
	}}})
}

// overUDS is upstream's egress selector with a Unix socket.
func overUDS(protocol apiserver.ProtocolType, serve func(*konnectivity.Proxy, net.Listener)) func(*testing.T, *konnectivity.Proxy) konnectivity.DialFunc {
	return func(t *testing.T, p *konnectivity.Proxy) konnectivity.DialFunc {
		dir, err := os.MkdirTemp("", "konnectivity") // t.TempDir may be too long for a socket
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
		path := filepath.Join(dir, "proxy.sock")
		l, err := net.Listen("unix", path)
		require.NoError(t, err)
		serve(p, l)
		return selected(t, apiserver.Connection{ProxyProtocol: protocol, Transport: &apiserver.Transport{UDS: &apiserver.UDSTransport{UDSName: path}}})
	}
}

func selected(t *testing.T, connection apiserver.Connection) konnectivity.DialFunc {
	selector, err := egressselector.NewEgressSelector(&apiserver.EgressSelectorConfiguration{
		EgressSelections: []apiserver.EgressSelection{{Name: "cluster", Connection: connection}},
	})
	require.NoError(t, err)
	dial, err := selector.Lookup(egressselector.Cluster.AsNetworkContext())
	require.NoError(t, err)
	return dial
}

// world is a proxy with a way through it.
type world struct {
	*konnectivity.Proxy
	way
	dial   konnectivity.DialFunc
	others sync.WaitGroup // goroutines of the test
}

// inWorlds runs a test for each way. Nothing may be left of it.
func inWorlds(t *testing.T, test func(t *testing.T, w *world)) {
	for _, way := range ways {
		run := func(t *testing.T) {
			w := &world{Proxy: konnectivity.New(), way: way}
			w.dial = way.serve(t, w.Proxy)
			test(t, w)
			w.end(t)
		}
		if way.bubble {
			t.Run(way.name, func(t *testing.T) { synctest.Test(t, run) })
		} else {
			t.Run(way.name, run)
		}
	}
}

// end stops the proxy, which takes no time.
func (w *world) end(t *testing.T) {
	t.Helper()
	began := time.Now()
	assert.NoError(t, w.Stop(context.Background()))
	w.others.Wait()
	if w.bubble {
		assert.Zero(t, time.Since(began))
	}
}

// target is one that a function plays.
func (w *world) target(play func(conn net.Conn)) konnectivity.DialFunc {
	return func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		w.others.Go(func() {
			play(far)
			_ = far.Close()
		})
		return near, nil
	}
}

// echo is a target that answers in kind.
func (w *world) echo() konnectivity.DialFunc {
	return w.target(func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
}

// open opens a tunnel that is there.
func (w *world) open(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := w.dial(t.Context(), "tcp", address)
	require.NoError(t, err)
	return conn
}

// closed awaits the end of so many tunnels and returns the last one.
func (w *world) closed(t *testing.T, n int) konnectivity.Tunnel {
	t.Helper()
	tunnels, err := w.AwaitTunnels(t.Context(), n)
	require.NoError(t, err)
	require.Len(t, tunnels, n)
	return tunnels[n-1]
}

// exchange sends something and awaits its echo.
func exchange(t *testing.T, conn net.Conn, data string) {
	t.Helper()
	var sending sync.WaitGroup
	sending.Go(func() {
		_, err := io.WriteString(conn, data)
		assert.NoError(t, err)
	})
	got := make([]byte, len(data))
	_, err := io.ReadFull(conn, got)
	assert.NoError(t, err)
	assert.Equal(t, data, string(got))
	sending.Wait()
}

var errFire = errors.New("the target is on fire")
