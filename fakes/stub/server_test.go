package stub_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/internal/pki"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// newClient returns a client that trusts the server. If there is a listener in memory,
// every host leads there.
func newClient(t *testing.T, s *stub.Server, l net.Listener) *http.Client {
	t.Helper()
	transport := &http.Transport{ForceAttemptHTTP2: true}
	if memory, ok := l.(*memnet.Listener); ok {
		transport.DialContext = memory.DialNetwork
	}
	if s.CA() != nil {
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(s.CA()))
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// get returns the body of the answer, which must have code 200, or an error.
func get(client *http.Client, url string) (string, error) {
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errors.Join(err, errors.New(resp.Status))
	}
	return string(body), err
}

var proto = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })

func serveTLS(t *testing.T, l net.Listener, handler http.Handler, hosts ...string) *stub.Server {
	t.Helper()
	s, err := stub.ServeTLS(l, handler, hosts...)
	require.NoError(t, err)
	return s
}

func TestServerOnASocket(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(net.Listener) *stub.Server
		want  string
	}{
		"plain":     {func(l net.Listener) *stub.Server { return stub.Serve(l, proto) }, "HTTP/1.1"},
		"encrypted": {func(l net.Listener) *stub.Server { return serveTLS(t, l, proto) }, "HTTP/2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			s := c.serve(l)
			body, err := get(newClient(t, s, l), s.URL())
			require.NoError(t, err)
			assert.Equal(t, c.want, body)
			assert.True(t, strings.HasSuffix(s.URL(), l.Addr().String()), s.URL())
			require.NoError(t, s.Stop(t.Context()))
			assert.NoError(t, s.Stop(t.Context()), "again")
			_, err = net.Dial("tcp", l.Addr().String())
			assert.Error(t, err, "the server listens no more")
		})
	}
}

func TestServerInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		s := serveTLS(t, l, proto, "fake.example", "::1")
		assert.Equal(t, "https://fake.example", s.URL())
		client := newClient(t, s, l)
		for _, url := range []string{s.URL(), "https://[::1]:8443"} {
			body, err := get(client, url)
			require.NoError(t, err)
			assert.Equal(t, "HTTP/2.0", body)
		}
		_, err := get(client, "https://other.example")
		assert.ErrorContains(t, err, "not other.example")
		began := time.Now()
		require.NoError(t, s.Stop(t.Context()))
		assert.LessOrEqual(t, time.Since(began), 20*time.Millisecond, "two idle connections")
	})
}

type fixedAddr string

func (fixedAddr) Network() string  { return "test" }
func (a fixedAddr) String() string { return string(a) }

type addressed struct {
	net.Listener
	addr fixedAddr
}

func (a addressed) Addr() net.Addr { return a.addr }

func TestURL(t *testing.T) {
	for _, c := range []struct {
		addr, host, want string
	}{
		{"127.0.0.1:80", "", "https://127.0.0.1:80"},
		{"[::]:80", "", "https://127.0.0.1:80"},
		{"0.0.0.0:80", "", "https://127.0.0.1:80"},
		{":80", "", "https://127.0.0.1:80"},
		{"[::1]:80", "", "https://[::1]:80"},
		{"[::1]:0", "", "https://[::1]"},
		{"127.0.0.1:0", "::1", "https://[::1]"},
		{"127.0.0.1:80", "a.example", "https://a.example:80"},
		{"127.0.0.1:0", "a.example", "https://a.example"},
		{"some.sock", "", "https://localhost"},
	} {
		var hosts []string
		if c.host != "" {
			hosts = []string{c.host}
		}
		s := serveTLS(t, addressed{memnet.Listen(), fixedAddr(c.addr)}, proto, hosts...)
		assert.Equal(t, c.want, s.URL(), "%+v", c)
		assert.NoError(t, s.Stop(t.Context()))
	}
}

func TestClientCertificate(t *testing.T) {
	l := memnet.Listen()
	s := serveTLS(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	defer func() { assert.NoError(t, s.Stop(t.Context())) }()
	authority, err := pki.NewAuthority("unknown to the server")
	require.NoError(t, err)
	pair, err := authority.Client("kube-apiserver")
	require.NoError(t, err)
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	require.NoError(t, err)
	client := newClient(t, s, l)
	client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{certificate}
	body, err := get(client, s.URL())
	require.NoError(t, err)
	assert.Equal(t, "kube-apiserver", body)
}

// inFlight starts a request and returns where its outcome comes out.
func inFlight(client *http.Client, url string, body io.Reader) <-chan error {
	outcome := make(chan error, 1)
	go func() {
		resp, err := client.Post(url, "text/plain", body)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			err = errors.Join(err, resp.Body.Close())
		}
		outcome <- err
	}()
	return outcome
}

// eachProtocol runs a test in a bubble, over HTTP/1 and HTTP/2.
func eachProtocol(t *testing.T, test func(*testing.T, func(http.Handler) (*stub.Server, *http.Client))) {
	t.Run("HTTP1", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			test(t, func(h http.Handler) (*stub.Server, *http.Client) {
				l := memnet.Listen()
				s := stub.Serve(l, h)
				return s, newClient(t, s, l)
			})
		})
	})
	t.Run("HTTP2", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			test(t, func(h http.Handler) (*stub.Server, *http.Client) {
				l := memnet.Listen()
				s := serveTLS(t, l, h)
				return s, newClient(t, s, l)
			})
		})
	})
}

func TestStopWaitsForRequests(t *testing.T) {
	eachProtocol(t, func(t *testing.T, serve func(http.Handler) (*stub.Server, *http.Client)) {
		s, client := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Hour)
			_, _ = w.Write(make([]byte, 1<<20))
		}))
		began := time.Now()
		outcome := inFlight(client, s.URL(), nil)
		synctest.Wait()
		require.NoError(t, s.Stop(t.Context()))
		assert.GreaterOrEqual(t, time.Since(began), time.Hour)
		assert.Less(t, time.Since(began), time.Hour+time.Second)
		assert.NoError(t, <-outcome)
		_, err := get(client, s.URL())
		assert.Error(t, err, "the listener is closed")
	})
}

func TestStopBreaksRequestsOff(t *testing.T) {
	eachProtocol(t, func(t *testing.T, serve func(http.Handler) (*stub.Server, *http.Client)) {
		var left error
		s, client := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done() // with an unread body net/http does not see the client go
			left = context.Cause(r.Context())
		}))
		outcome := inFlight(client, s.URL(), strings.NewReader("not read by the handler"))
		synctest.Wait()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("a minute is over"))
		defer cancel()
		assert.ErrorContains(t, s.Stop(ctx), "broken off: a minute is over")
		assert.Error(t, left, "Stop has waited for the handler")
		assert.Error(t, <-outcome)
	})
}

// TestStopAtOnce stops a server with connections on which no request came.
func TestStopAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		s := serveTLS(t, l, proto)
		silent, err := l.DialContext(t.Context())
		require.NoError(t, err)
		handshaken, err := l.DialContext(t.Context())
		require.NoError(t, err)
		require.NoError(t, tls.Client(handshaken, &tls.Config{InsecureSkipVerify: true}).Handshake())
		synctest.Wait()
		began := time.Now()
		require.NoError(t, s.Stop(t.Context()))
		assert.Zero(t, time.Since(began))
		for _, conn := range []net.Conn{silent, handshaken} {
			_, err := io.Copy(io.Discard, conn)
			assert.NoError(t, err, "the server has closed it")
			assert.NoError(t, conn.Close())
		}
	})
}

func TestStopClosesTunnels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		returned := false
		s := stub.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(conn, rw) // an echo
			assert.NoError(t, conn.Close())
			time.Sleep(time.Minute)
			returned = true
		}))
		conn, err := l.DialContext(t.Context())
		require.NoError(t, err)
		const request = "GET / HTTP/1.1\r\nHost: fake\r\n\r\n"
		_, err = io.WriteString(conn, request+"echo")
		require.NoError(t, err)
		echo := make([]byte, 4)
		_, err = io.ReadFull(conn, echo)
		require.NoError(t, err)
		assert.Equal(t, "echo", string(echo))

		require.NoError(t, s.Stop(t.Context()))
		assert.True(t, returned, "Stop waits for the handler")
		_, err = conn.Read(echo)
		assert.ErrorIs(t, err, io.EOF)
		assert.NoError(t, conn.Close())
	})
}

func TestStopTellsThatTheListenerFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		s := stub.Serve(l, proto)
		require.NoError(t, l.Close())
		synctest.Wait()
		assert.ErrorContains(t, s.Stop(t.Context()), "serve a fake on 127.0.0.1:0: accept memory")
	})
}
