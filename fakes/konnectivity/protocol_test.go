package konnectivity_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/fakes/konnectivity"
	"snowglobe.test/fakes/stub"
)

func TestPatterns(t *testing.T) {
	p := konnectivity.New()
	for _, c := range []struct {
		pattern, address string
		want             bool
	}{
		{"a:80", "a:80", true}, {"a:80", "a:8080", false}, {"*", "", true}, {"*", "a:80", true},
		{"*.svc:443", "web.default.svc:443", true}, {"*.svc:443", "web.default.svc:80", false},
		{"10.*:*", "10.0.0.1:10250", true}, {"10.*:*", "110.0.0.1:10250", false},
		{"[::1]:*", "[::1]:443", true}, {"a*a", "a", false}, {"a*a*", "aba", true}, {"", "a", false},
	} {
		remove := p.Route(c.pattern, func(context.Context, string, string) (net.Conn, error) { return nil, nil })
		answer, err := p.Dials.Serve(t.Context(), konnectivity.Request{Address: c.address})
		assert.Equal(t, c.want, err == nil && answer.Dial != nil, "%q for %q: %v", c.pattern, c.address, err)
		remove()
	}
}

// TestSeveralTunnels has two tunnels on one stream, which upstream's client never has.
func TestSeveralTunnels(t *testing.T) {
	w := &world{Proxy: konnectivity.New()}
	w.Route("echo:*", w.echo())
	w.Route("on-fire:*", w.target(func(net.Conn) {}))
	hanging := w.Dials.Hold(func(r konnectivity.Request) bool { return r.Address == "hanging:1" })
	packets := openStream(t, w)

	dial := func(random int64, address string) *client.DialResponse {
		t.Helper()
		send(t, packets, client.PacketType_DIAL_REQ, &client.Packet_DialRequest{DialRequest: &client.DialRequest{Random: random, Protocol: "tcp", Address: address}})
		response := receive(t, packets, client.PacketType_DIAL_RSP).GetDialResponse()
		assert.Equal(t, random, response.GetRandom())
		return response
	}
	one, two := dial(11, "echo:1"), dial(22, "echo:2")
	assert.NotEqual(t, one.GetConnectID(), two.GetConnectID())
	for _, conn := range []*client.DialResponse{two, one} {
		send(t, packets, client.PacketType_DATA, &client.Packet_Data{Data: &client.Data{ConnectID: conn.GetConnectID(), Data: []byte("hello")}})
		data := receive(t, packets, client.PacketType_DATA).GetData()
		assert.Equal(t, conn.GetConnectID(), data.GetConnectID())
		assert.Equal(t, "hello", string(data.GetData()))
	}
	send(t, packets, client.PacketType_CLOSE_REQ, &client.Packet_CloseRequest{CloseRequest: &client.CloseRequest{ConnectID: one.GetConnectID()}})
	closed := receive(t, packets, client.PacketType_CLOSE_RSP).GetCloseResponse()
	assert.Equal(t, one.GetConnectID(), closed.GetConnectID())
	assert.Empty(t, closed.GetError())

	three := dial(33, "on-fire:3")
	closed = receive(t, packets, client.PacketType_CLOSE_RSP).GetCloseResponse()
	assert.Equal(t, three.GetConnectID(), closed.GetConnectID())

	// These numbers are unknown.
	send(t, packets, client.PacketType_DATA, &client.Packet_Data{Data: &client.Data{ConnectID: 99}})
	send(t, packets, client.PacketType_CLOSE_REQ, &client.Packet_CloseRequest{CloseRequest: &client.CloseRequest{ConnectID: 99}})
	send(t, packets, client.PacketType_DIAL_CLS, &client.Packet_CloseDial{CloseDial: &client.CloseDial{Random: 99}})

	send(t, packets, client.PacketType_DIAL_REQ, &client.Packet_DialRequest{DialRequest: &client.DialRequest{Random: 44, Address: "hanging:1"}})
	require.NoError(t, hanging.Await(t.Context(), 1))
	send(t, packets, client.PacketType_DIAL_CLS, &client.Packet_CloseDial{CloseDial: &client.CloseDial{Random: 44}})
	assert.Contains(t, receive(t, packets, client.PacketType_DIAL_RSP).GetDialResponse().GetError(), "held at a gate")

	w.Cut()
	_, err := packets.Recv()
	assert.Equal(t, codes.Unavailable, status.Code(err))
	assert.Equal(t, konnectivity.ByClient, w.closed(t, 4).ClosedBy, "it gave up")
	assert.Equal(t, konnectivity.ByProxy, w.Tunnels()[1].ClosedBy, "it was cut")
	w.end(t)
}

func openStream(t *testing.T, w *world) client.ProxyService_ProxyClient {
	t.Helper()
	l := memnet.Listen()
	w.ServeGRPC(l)
	conn, err := grpc.NewClient("passthrough:///proxy", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, conn.Close()) })
	packets, err := client.NewProxyServiceClient(conn).Proxy(t.Context())
	require.NoError(t, err)
	return packets
}

func send(t *testing.T, packets client.ProxyService_ProxyClient, kind client.PacketType, payload any) {
	t.Helper()
	packet := &client.Packet{Type: kind}
	switch p := payload.(type) {
	case *client.Packet_DialRequest:
		packet.Payload = p
	case *client.Packet_Data:
		packet.Payload = p
	case *client.Packet_CloseRequest:
		packet.Payload = p
	case *client.Packet_CloseDial:
		packet.Payload = p
	}
	require.NoError(t, packets.Send(packet))
}

func receive(t *testing.T, packets client.ProxyService_ProxyClient, kind client.PacketType) *client.Packet {
	t.Helper()
	packet, err := packets.Recv()
	require.NoError(t, err)
	require.Equal(t, kind, packet.GetType())
	return packet
}

// TestNotConnect asks a proxy for what it isn't there for.
func TestNotConnect(t *testing.T) {
	w := &world{Proxy: konnectivity.New()}
	w.Route("*", w.echo())
	l := memnet.Listen()
	ca, err := w.ServeConnectTLS(l, "proxy")
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(ca))
	transport := &http.Transport{DialContext: l.DialNetwork, TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	response, err := transport.RoundTrip(&http.Request{Method: "GET", Header: http.Header{}, URL: &url.URL{Scheme: "https", Host: "proxy", Path: "/healthz"}})
	require.NoError(t, err)
	assert.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
	assert.NoError(t, response.Body.Close())
	assert.ErrorContains(t, w.Dials.Calls()[0].Err, "HTTP 405")

	response, err = transport.RoundTrip(&http.Request{
		Method: "CONNECT", Header: http.Header{}, URL: &url.URL{Scheme: "https", Host: "proxy"}, Host: "echo:80", Body: io.NopCloser(bytes.NewReader(nil)),
	})
	require.NoError(t, err)
	assert.Equal(t, http.StatusHTTPVersionNotSupported, response.StatusCode)
	assert.NoError(t, response.Body.Close())
	transport.CloseIdleConnections()
	w.end(t)
}

// TestDialConnect is about proxies that don't do as they should.
func TestDialConnect(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"silence":            {"", "EOF"},
		"nonsense":           {"hello\r\n\r\n", "malformed HTTP"},
		"the target's bytes": {"HTTP/1.1 200 OK\r\n\r\nhello", "the target has spoken first"},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = far.Read(make([]byte, 1000))
				_, _ = io.WriteString(far, c.answer)
				_ = far.Close()
			}()
			_, err := konnectivity.DialConnect(func(context.Context) (net.Conn, error) { return near, nil })(t.Context(), "tcp", "a:80")
			assert.ErrorContains(t, err, c.want)
			<-done
		})
	}
	_, err := konnectivity.DialConnect(func(context.Context) (net.Conn, error) { return nil, errFire })(t.Context(), "tcp", "a:80")
	assert.ErrorIs(t, err, errFire)
	_, err = konnectivity.DialGRPC(func(context.Context) (net.Conn, error) { return nil, errFire })(t.Context(), "tcp", "a:80")
	assert.ErrorContains(t, err, errFire.Error())
}

// TestBrokenStream breaks a stream off before it has a tunnel.
func TestBrokenStream(t *testing.T) {
	w := &world{Proxy: konnectivity.New()}
	w.Dials.Reply(konnectivity.Answer{}, stub.ErrBreak)
	packets := openStream(t, w)
	send(t, packets, client.PacketType_DIAL_REQ, &client.Packet_DialRequest{DialRequest: &client.DialRequest{Random: 1, Address: "a:80"}})
	_, err := packets.Recv()
	assert.Equal(t, codes.Unavailable, status.Code(err))
	w.end(t)
}
