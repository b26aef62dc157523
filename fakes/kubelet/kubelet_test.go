package kubelet_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/proxy"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	clientspdy "k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/kubelet"
	"snowglobe.test/internal/conns"
	"snowglobe.test/internal/pki"
)

func TestMain(m *testing.M) {
	// Gorilla's WebSocket client, which client-go uses, dials by itself or with what
	// knows a proxy.
	proxy.RegisterDialerType("test", func(u *url.URL, _ proxy.Dialer) (proxy.Dialer, error) {
		dial, ok := dialers.Load(u.Host)
		if !ok {
			return nil, fmt.Errorf("no dialer %s", u.Host)
		}
		return dial.(dialer), nil
	})
	// Client-go complains of what is broken off here. One of its handlers of errors
	// also waits, until a time that is not that of all bubbles.
	klog.SetLogger(logr.Discard())
	runtime.ErrorHandlers = nil
	// It also notices late that it has lost a connection. What is left of a kubelet is
	// looked for in TestStopLeavesNothing.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"),
		goleak.IgnoreAnyFunction("github.com/moby/spdystream.(*Connection).shutdown"),
	)
}

var dialers sync.Map // those of the worlds, by their names

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

// world is a kubelet with one pod, and the way there.
type world struct {
	*kubelet.Kubelet
	t         *testing.T
	app       *kubelet.Container
	pod       *kubelet.Pod
	config    *rest.Config
	transport *http.Transport
	clients   conns.Set      // what it has dialed
	others    sync.WaitGroup // goroutines of the test
}

// inWorlds runs a test on a socket in real time, and in memory in virtual time. Nothing
// may be left of either.
func inWorlds(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("socket", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		w := newWorld(t, l, kubelet.Config{}, nil)
		test(t, w)
		w.end()
	})
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, memnet.Listen(), kubelet.Config{}, nil)
			test(t, w)
			w.end()
			time.Sleep(time.Minute) // client-go's heartbeats notice in a while
		})
	})
}

func newWorld(t *testing.T, l net.Listener, config kubelet.Config, client *pki.Pair) *world {
	t.Helper()
	k, err := kubelet.Serve(l, config)
	require.NoError(t, err)
	w := &world{Kubelet: k, t: t, app: &kubelet.Container{Name: "app"}}
	w.pod = &kubelet.Pod{Namespace: "default", Name: "web", UID: types.UID("123"), Containers: []*kubelet.Container{w.app}}
	require.NoError(t, k.AddPod(w.pod))
	w.config = &rest.Config{Host: k.URL(), TLSClientConfig: rest.TLSClientConfig{CAData: k.CA()}}
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(k.CA()))
	dial := (&net.Dialer{}).DialContext
	if l, ok := l.(*memnet.Listener); ok {
		dial = l.DialNetwork
	}
	tracked := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return w.clients.Add(conn), nil
	}
	name := fmt.Sprintf("%p", l)
	dialers.Store(name, dialer(tracked))
	w.config.Proxy = func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: "test", Host: name}, nil }
	w.transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true, DialContext: tracked}
	if client != nil {
		w.config.CertData, w.config.KeyData = client.Cert, client.Key
		certificate, err := tls.X509KeyPair(client.Cert, client.Key)
		require.NoError(t, err)
		w.transport.TLSClientConfig.Certificates = []tls.Certificate{certificate}
	}
	return w
}

// leave closes the client's connections.
func (w *world) leave() { w.clients.CloseAll() }

// end stops the kubelet, which takes no time, and what the client keeps.
func (w *world) end() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	assert.NoError(w.t, w.Stop(ctx))
	w.transport.CloseIdleConnections()
}

// url is that of a path with a query, of pairs of names and values.
func (w *world) url(path string, query ...string) *url.URL {
	values := url.Values{}
	for i := 0; i < len(query); i += 2 {
		values.Add(query[i], query[i+1])
	}
	u := w.parse(path)
	u.RawQuery = values.Encode()
	return u
}

// parse returns the URL of a path that may have a query.
func (w *world) parse(path string) *url.URL {
	u, err := url.Parse(w.URL() + path)
	require.NoError(w.t, err)
	return u
}

// spdy is client-go's executor for a protocol of SPDY.
func (w *world) spdy(u *url.URL, protocols ...string) remotecommand.Executor {
	w.t.Helper()
	transport := w.transport.Clone()
	w.t.Cleanup(transport.CloseIdleConnections)
	upgrader, err := spdy.NewRoundTripperWithConfig(spdy.RoundTripperConfig{UpgradeTransport: transport})
	require.NoError(w.t, err)
	executor, err := remotecommand.NewSPDYExecutorForProtocols(upgrader, clientspdy.NewUpgraderForStreaming(upgrader), "POST", u, protocols...)
	require.NoError(w.t, err)
	return executor
}

// webSocket is client-go's executor for a protocol of WebSockets.
func (w *world) webSocket(u *url.URL, protocols ...string) remotecommand.Executor {
	w.t.Helper()
	executor, err := remotecommand.NewWebSocketExecutorForProtocols(w.config, "GET", u.String(), protocols...)
	require.NoError(w.t, err)
	return executor
}

// get returns the code and the body of a page.
func (w *world) get(ctx context.Context, u *url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, "GET", u.String(), nil)
	require.NoError(w.t, err)
	return w.transport.RoundTrip(request)
}
