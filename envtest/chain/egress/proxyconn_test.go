package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"snowglobe.test/internal/hostile"
)

// TestPastProxies runs TestBehindProxies where the environment names proxies: net/http
// reads that once.
func TestPastProxies(t *testing.T) {
	for _, proxy := range []string{"http://127.0.0.1:9", "socks5://127.0.0.1:9", "socks5h://127.0.0.1", "socks5://stranger:secret@127.0.0.1:9", "https://127.0.0.1:9", "https://stranger:secret@[::1]"} {
		t.Run(proxy, func(t *testing.T) {
			hostile.AgainWith(t, proxied(proxy), "TestBehindProxies")
		})
	}
	hostile.AgainWith(t, proxied("https://127.0.0.1:9"), "TestBehindTLSProxy")
}

func withoutRules(dial utilnet.DialFunc) utilnet.DialFunc { return dial }

// proxied are the variables by which net/http finds a proxy.
func proxied(url string) []string {
	return []string{"HTTP_PROXY=" + url, "HTTPS_PROXY=" + url, "http_proxy=" + url, "https_proxy=" + url}
}

// TestBehindTLSProxy has a client say what helps.
func TestBehindTLSProxy(t *testing.T) {
	if !slices.Contains(environmentProxies("https"), "127.0.0.1:9") {
		t.Skip("there is no such proxy; see TestPastProxies")
	}
	dial := Network{Outside: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no server listens") }}.Dialer(withoutRules)
	_, err := dial(t.Context(), "tcp", "127.0.0.1:9")
	require.ErrorContains(t, err, "no server listens: the environment has a proxy of https://")
	require.ErrorContains(t, err, "NO_PROXY")
	_, err = dial(t.Context(), "tcp", "127.0.0.1:10")
	require.EqualError(t, err, "no server listens")

	// A client that goes by plainProxies reaches what is outside through TLS.
	here, there := net.Pipe()
	defer func() { _ = there.Close() }()
	dial = Network{Outside: func(_ context.Context, _, address string) (net.Conn, error) {
		assert.Equal(t, "127.0.0.1:9", address)
		return here, nil
	}}.Dialer(withoutRules)
	proxy, err := plainProxies()(&http.Request{URL: &url.URL{Scheme: "https", Host: "outside.example"}})
	require.NoError(t, err)
	conn, err := dial(t.Context(), "tcp", proxy.Host)
	require.NoError(t, err)
	go func() {
		_, _ = io.WriteString(conn, "CONNECT outside.example:443 HTTP/1.1\r\nHost: outside.example:443\r\n\r\n")
	}()
	const handshake = 22 // the kind of the first record of TLS
	first := make([]byte, 1)
	_, err = io.ReadFull(there, first)
	require.NoError(t, err)
	assert.EqualValues(t, handshake, first[0])
	require.NoError(t, conn.Close())
}

// TestBehindProxies has an HTTP client that follows the environment look for hosts inside
// and outside.
func TestBehindProxies(t *testing.T) {
	outside := "outside.example:443"
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: outside}})
	require.NoError(t, err)
	if proxy != nil {
		outside = hostPort(proxy)
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { _, _ = io.WriteString(w, "hello "+req.Host) })
	secure, plain := httptest.NewTLSServer(hello), httptest.NewServer(hello)
	defer secure.Close()
	defer plain.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "another port") }))
	defer other.Close()
	servers := map[string]string{
		"inside.example:443":  secure.Listener.Addr().String(),
		"inside.example:80":   plain.Listener.Addr().String(),
		"inside.example:8080": other.Listener.Addr().String(),
	}
	inside := func(_ context.Context, address string) (net.Conn, bool, error) {
		if address == "gone.example:443" {
			return nil, true, errors.New("no server listens")
		}
		to, ok := servers[address]
		if !ok {
			return nil, false, nil
		}
		conn, err := net.Dial("tcp", to)
		return conn, true, err
	}
	var dialed []string
	machine := func(_ context.Context, _, address string) (net.Conn, error) {
		dialed = append(dialed, address)
		return nil, errors.New("no network")
	}
	client := func(network Network, change ...func(*http.Transport)) *http.Client {
		dialed = nil
		transport := secure.Client().Transport.(*http.Transport).Clone()
		if transport.Proxy = plainProxies(); transport.Proxy == nil {
			transport.Proxy = http.ProxyFromEnvironment
		}
		for _, f := range change {
			f(transport)
		}
		transport.TLSClientConfig.ServerName = "example.com" // of the certificate
		network.Outside = machine
		transport.DialContext = network.Dialer(withoutRules)
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport}
	}
	do := func(c *http.Client, req *http.Request) (string, error) {
		response, err := c.Do(req)
		if err != nil {
			return "", err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	get := func(c *http.Client, url string) (string, error) {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		require.NoError(t, err)
		return do(c, req)
	}

	c := client(Network{InProcess: inside})
	for _, url := range []string{"https://inside.example/", "http://inside.example/"} {
		said, err := get(c, url)
		require.NoError(t, err)
		assert.Equal(t, "hello inside.example", said)
	}
	said, err := get(c, "http://inside.example:8080/")
	require.NoError(t, err)
	assert.Equal(t, "another port", said, "and not from the host before")
	_, err = get(c, "https://gone.example/")
	require.ErrorContains(t, err, "no server listens")
	assert.Empty(t, dialed, "of what is inside")
	_, err = get(c, "https://outside.example/")
	require.ErrorContains(t, err, "no network")
	assert.Equal(t, []string{outside}, dialed, "of what is outside, as a kube-apiserver does")

	// As the server proxies to Pods, where the Host is that of the user's request.
	c = client(Network{InProcess: inside}, NameProxies)
	for url, answer := range map[string]string{"http://inside.example/": "hello elsewhere", "http://inside.example:8080/": "another port", "https://inside.example/": "hello elsewhere"} {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		require.NoError(t, err)
		req.Host = "elsewhere"
		said, err := do(c, req)
		require.NoError(t, err)
		assert.Equal(t, answer, said)
	}
	assert.Empty(t, dialed)
	_, err = get(c, "http://outside.example/")
	require.ErrorContains(t, err, "no network")
	_, err = get(c, "https://outside.example/")
	require.ErrorContains(t, err, "no network")
	assert.Len(t, dialed, 2)
	assert.NotContains(t, strings.Join(dialed, " "), targetInfix)

	c = client(Network{Sealed: true})
	_, err = get(c, "https://outside.example/")
	require.ErrorContains(t, err, "no network")
	assert.Equal(t, []string{"outside.example:443"}, dialed, "by a dialer, which is asked for everything")
}

// TestTunnel is a proxy of the environment that works.
func TestTunnel(t *testing.T) {
	here, there := net.Pipe()
	defer func() { _ = there.Close() }()
	conn := outsideConn(t, here)
	const asked = "CONNECT outside.example:443 HTTP/1.1\r\nHost: outside.example:443\r\nProxy-Authorization: Basic eA==\r\n\r\n"
	go func() {
		for _, part := range []string{asked[:20], asked[20:]} { // however it is cut
			_, _ = io.WriteString(conn, part)
		}
	}()
	heard := make([]byte, len(asked))
	_, err := io.ReadFull(there, heard)
	require.NoError(t, err)
	assert.Equal(t, asked, string(heard))
	go func() { _, _ = io.WriteString(there, "HTTP/1.1 403 Forbidden\r\n\r\n") }()
	said := make([]byte, 12)
	_, err = io.ReadFull(conn, said)
	require.NoError(t, err)
	assert.Equal(t, "HTTP/1.1 403", string(said))
	require.NoError(t, conn.Close())
	_, err = conn.Read(said)
	require.Error(t, err)
}

// outsideConn is one to a proxy at the other end of conn, for a host that is not inside.
func outsideConn(t *testing.T, conn net.Conn) net.Conn {
	return newProxyConn(t.Context(), func(_ context.Context, target string) (net.Conn, bool, error) {
		assert.Equal(t, "outside.example:443", target)
		return conn, true, nil
	})
}

// What a client says to a SOCKS proxy: that it may log in or not, as whom, and where to.
const (
	socksHello = "\x05\x02\x00\x02"
	socksUser  = "\x01\x08somebody\x06secret"
	socksWhere = "\x05\x01\x00\x03\x0foutside.example\x01\xbb"
)

// TestSOCKSTunnel is a SOCKS proxy of the environment that works, or wants what a client
// does not have.
func TestSOCKSTunnel(t *testing.T) {
	for name, c := range map[string]struct {
		proxy   []string // what the proxy hears and says, by turns
		refused string
	}{
		"login":          {proxy: []string{socksHello, "\x05\x02", socksUser, "\x01\x00", socksWhere, "\x05\x00"}},
		"no login":       {proxy: []string{socksHello, "\x05\x00", socksWhere, "\x05\x00"}},
		"wrong login":    {proxy: []string{socksHello, "\x05\x02", socksUser, "\x01\x01"}, refused: "refused the user and password"},
		"other methods":  {proxy: []string{socksHello, "\x05\xff"}, refused: "by method 255"},
		"ends too early": {proxy: []string{socksHello}, refused: "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			go func() {
				defer func() { _ = there.Close() }()
				for i := 0; i < len(c.proxy); i += 2 {
					heard := make([]byte, len(c.proxy[i]))
					_, err := io.ReadFull(there, heard)
					assert.NoError(t, err)
					assert.Equal(t, c.proxy[i], string(heard))
					if i+1 < len(c.proxy) {
						_, _ = io.WriteString(there, c.proxy[i+1])
					}
				}
			}()
			conn := outsideConn(t, here)
			var err error
			for _, part := range []string{socksHello[:1], socksHello[1:], socksUser[:4], socksUser[4:], socksWhere[:6], socksWhere[6:]} { // however it is cut
				if _, err = io.WriteString(conn, part); err != nil {
					break
				}
			}
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				_, err = conn.Read(make([]byte, 1<<10))
				for err == nil { // what was said before
					_, err = conn.Read(make([]byte, 1<<10))
				}
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			said, err := io.ReadAll(conn)
			require.NoError(t, err)
			assert.Equal(t, "\x05\x02\x01\x00\x05\x00", string(said), "the last two bytes are the proxy's")
		})
	}
}

// TestSOCKSTargets are the kinds of addresses that a client may ask for.
func TestSOCKSTargets(t *testing.T) {
	for request, want := range map[string]string{
		socksWhere: "outside.example:443",
		"\x05\x01\x00\x01\x0a\x00\x00\x01\x00\x50":                                       "10.0.0.1:80",
		"\x05\x01\x00\x04\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01\x01\xbb": "[2001:db8::1]:443",
	} {
		protocol := &socksProtocol{}
		_, target, err := protocol.hear([]byte("\x05\x01\x00" + request))
		require.NoError(t, err)
		assert.Equal(t, want, target)
	}
	for _, request := range []string{"\x05\x02" + socksWhere[2:], "\x05\x01\x00\x02\x00"} {
		_, _, err := (&socksProtocol{}).hear([]byte("\x05\x01\x00" + request))
		require.Error(t, err)
	}
}

// TestGiveUp has a client's deadline pass before it is connected, as net/http's does when a
// request is cancelled.
func TestGiveUp(t *testing.T) {
	conn := newProxyConn(t.Context(), func(ctx context.Context, _ string) (net.Conn, bool, error) {
		<-ctx.Done()
		return nil, false, ctx.Err()
	})
	go func() { _ = conn.SetDeadline(time.Unix(1, 0)) }()
	_, err := io.WriteString(conn, "CONNECT outside.example:443 HTTP/1.1\r\nHost: outside.example:443\r\n\r\n")
	require.ErrorIs(t, err, context.Canceled)
}
