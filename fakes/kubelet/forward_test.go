package kubelet_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"

	gwebsocket "github.com/gorilla/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/portforward"
	clientspdy "k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"snowglobe.test/fakes/kubelet"
	"snowglobe.test/fakes/stub"
)

// forwards are the ways to forward ports that have streams.
var forwards = map[string]func(w *world) httpstream.Dialer{
	"SPDY": func(w *world) httpstream.Dialer {
		upgrader, err := spdy.NewRoundTripperWithConfig(spdy.RoundTripperConfig{UpgradeTransport: w.transport})
		require.NoError(w.t, err)
		return clientspdy.NewDialerForStreaming(clientspdy.NewUpgraderForStreaming(upgrader), &http.Client{Transport: upgrader}, "POST", w.url("/portForward/default/web"))
	},
	"tunnel": func(w *world) httpstream.Dialer {
		dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(w.url("/portForward/default/web/123"), w.config)
		require.NoError(w.t, err)
		return dialer
	},
}

// forwarding is a port-forward of a client.
type forwarding struct {
	httpstream.Connection
	t        *testing.T
	requests int
}

func forward(w *world, dialer httpstream.Dialer) *forwarding {
	w.t.Helper()
	conn, protocol, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	require.NoError(w.t, err)
	assert.Equal(w.t, portforward.PortForwardProtocolV1Name, protocol)
	return &forwarding{conn, w.t, 0}
}

// connect opens a connection to a port.
func (f *forwarding) connect(port int) (data, failure httpstream.Stream) {
	f.t.Helper()
	f.requests++
	headers := http.Header{"Streamtype": {"error"}, "Port": {strconv.Itoa(port)}, "Requestid": {strconv.Itoa(f.requests)}}
	failure, err := f.CreateStream(headers)
	require.NoError(f.t, err)
	require.NoError(f.t, failure.Close())
	headers.Set("streamType", "data")
	data, err = f.CreateStream(headers)
	require.NoError(f.t, err)
	return data, failure
}

func (f *forwarding) close() {
	assert.NoError(f.t, f.Close())
	<-f.CloseChan()
}

// inForwards runs a test for each way, in each world.
func inForwards(t *testing.T, test func(t *testing.T, w *world, dialer httpstream.Dialer)) {
	for name, dialer := range forwards {
		t.Run(name, func(t *testing.T) {
			inWorlds(t, func(t *testing.T, w *world) { test(t, w, dialer(w)) })
		})
	}
}

// web is a web server that echoes.
func web(_ context.Context, conn net.Conn) error {
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})}
	done := make(chan struct{})
	server.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			close(done)
		}
	}
	l := &one{conn: make(chan net.Conn, 1), done: done}
	l.conn <- conn
	if err := server.Serve(l); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// one is a listener with one connection.
type one struct {
	conn chan net.Conn
	done chan struct{}
}

func (o *one) Accept() (net.Conn, error) {
	select {
	case c := <-o.conn:
		return c, nil
	case <-o.done:
		return nil, net.ErrClosed
	}
}
func (o *one) Close() error   { return nil }
func (o *one) Addr() net.Addr { return &net.TCPAddr{} }

func TestPortForward(t *testing.T) {
	inForwards(t, func(t *testing.T, w *world, dialer httpstream.Dialer) {
		w.pod.Ports = map[int]func(context.Context, net.Conn) error{80: web}
		f := forward(w, dialer)
		big := bytes.Repeat([]byte("x"), 1<<20)
		for range 3 {
			data, failure := f.connect(80)
			for range 2 { // the server's deadlines work
				var sent bytes.Buffer
				request, err := http.NewRequest("POST", "http://web/", bytes.NewReader(big))
				require.NoError(t, err)
				require.NoError(t, request.Write(&sent))
				w.others.Go(func() { _, _ = sent.WriteTo(data) })
				response, err := http.ReadResponse(bufio.NewReader(data), nil)
				require.NoError(t, err)
				body, err := io.ReadAll(response.Body)
				assert.NoError(t, err)
				assert.Equal(t, big, body)
				w.others.Wait()
			}
			assert.NoError(t, data.Close())
			told, err := io.ReadAll(failure)
			assert.NoError(t, err)
			assert.Empty(t, string(told))
		}
		sessions, err := w.AwaitSessions(t.Context(), 3)
		require.NoError(t, err)
		assert.Equal(t, 80, sessions[2].Port)
		assert.NoError(t, sessions[2].Err)
		f.close()
	})
}

// TestPortForwardHalfClosed lets the client end its half, and still be answered.
func TestPortForwardHalfClosed(t *testing.T) {
	inForwards(t, func(t *testing.T, w *world, dialer httpstream.Dialer) {
		w.pod.Ports = map[int]func(context.Context, net.Conn) error{7: func(_ context.Context, conn net.Conn) error {
			all, err := io.ReadAll(conn)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(conn, "%d bytes", len(all))
			return err
		}}
		f := forward(w, dialer)
		data, _ := f.connect(7)
		_, err := io.WriteString(data, "hello")
		require.NoError(t, err)
		require.NoError(t, data.Close())
		answer, err := io.ReadAll(data)
		assert.NoError(t, err)
		assert.Equal(t, "5 bytes", string(answer))
		f.close()
	})
}

func TestPortForwardFails(t *testing.T) {
	inForwards(t, func(t *testing.T, w *world, dialer httpstream.Dialer) {
		w.pod.Ports = map[int]func(context.Context, net.Conn) error{
			80: func(context.Context, net.Conn) error { return errors.New("it is on fire") },
			81: func(context.Context, net.Conn) error { return stub.ErrBreak },
		}
		f := forward(w, dialer)
		for port, want := range map[int]string{80: "it is on fire", 8080: "nothing listens on port 8080 of pod default/web: set Pod.Ports[8080]"} {
			_, failure := f.connect(port)
			told, err := io.ReadAll(failure)
			assert.NoError(t, err)
			assert.Contains(t, string(told), want)
		}
		for _, headers := range []http.Header{{"Streamtype": {"data"}, "Port": {"0"}}, {"Streamtype": {"shoes"}, "Port": {"80"}}} {
			_, err := f.CreateStream(headers)
			assert.Error(t, err)
		}
		data, _ := f.connect(81)
		_, err := io.ReadAll(data)
		assert.NoError(t, err, "SPDY has no other word for it than the end")
		<-f.CloseChan()
		_ = f.Close()
	})
}

// TestPortForwardLeft ends the connections of a client that leaves.
func TestPortForwardLeft(t *testing.T) {
	inForwards(t, func(t *testing.T, w *world, dialer httpstream.Dialer) {
		started := make(chan struct{})
		w.pod.Ports = map[int]func(context.Context, net.Conn) error{80: func(ctx context.Context, conn net.Conn) error {
			close(started)
			_, err := io.Copy(io.Discard, conn)
			<-ctx.Done()
			return errors.Join(err, context.Cause(ctx))
		}}
		f := forward(w, dialer)
		data, _ := f.connect(80)
		_, err := io.WriteString(data, "hello")
		require.NoError(t, err)
		<-started
		f.close()
		sessions, err := w.AwaitSessions(t.Context(), 1)
		require.NoError(t, err)
		assert.ErrorContains(t, sessions[0].Err, "the client has closed the connection")
	})
}

// TestPortForwardOfOld is about clients that don't number their connections.
func TestPortForwardOfOld(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		w.pod.Ports = map[int]func(context.Context, net.Conn) error{80: func(_ context.Context, conn net.Conn) error {
			_, err := io.WriteString(conn, "hello")
			return err
		}}
		f := forward(w, forwards["SPDY"](w))
		for range 2 {
			_, err := f.CreateStream(http.Header{"Streamtype": {"error"}, "Port": {"80"}})
			require.NoError(t, err)
			data, err := f.CreateStream(http.Header{"Streamtype": {"data"}, "Port": {"80"}})
			require.NoError(t, err)
			greeting, err := io.ReadAll(data)
			assert.NoError(t, err)
			assert.Equal(t, "hello", string(greeting))
		}
		f.close()
	})
}

// TestPortForwardWebSocket is about the channels of a WebSocket, two for each port.
func TestPortForwardWebSocket(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world) {
		echo := func(_ context.Context, conn net.Conn) error {
			buffer := make([]byte, 5)
			if _, err := io.ReadFull(conn, buffer); err != nil {
				return err
			}
			_, err := conn.Write(bytes.ToUpper(buffer))
			return err
		}
		w.pod.Ports = map[int]func(context.Context, net.Conn) error{80: echo}
		dialer := gwebsocket.Dialer{NetDialContext: w.transport.DialContext, TLSClientConfig: w.transport.TLSClientConfig, Subprotocols: []string{"v4.channel.k8s.io"}}
		u := w.url("/portForward/default/web", "port", "80,81")
		u.Scheme = "wss"
		conn, response, err := dialer.DialContext(t.Context(), u.String(), nil)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.NoError(t, conn.WriteMessage(gwebsocket.BinaryMessage, []byte("\x00hello")))
		got := map[byte]string{}
		for {
			_, message, err := conn.ReadMessage()
			if err != nil {
				break
			}
			got[message[0]] += string(message[1:])
		}
		assert.Equal(t, map[byte]string{
			0: "\x50\x00HELLO", 1: "\x50\x00", 2: "\x51\x00",
			3: "\x51\x00error forwarding port 81 to pod web, uid : nothing listens on port 81 of pod default/web: set Pod.Ports[81]",
		}, got)
		_ = conn.Close() // the kubelet was faster
		sessions, err := w.AwaitSessions(t.Context(), 2)
		require.NoError(t, err)
		assert.Equal(t, "v4.channel.k8s.io", sessions[0].Protocol)
	})
}

// TestPortForwardByClient is client-go's whole port-forward, which listens on a socket.
func TestPortForwardByClient(t *testing.T) {
	for name, dialer := range forwards {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			w := newWorld(t, l, kubelet.Config{}, nil)
			w.pod.Ports = map[int]func(context.Context, net.Conn) error{80: web}
			stop, ready := make(chan struct{}), make(chan struct{})
			forwarder, err := portforward.NewForStreaming(dialer(w), []string{"0:80"}, stop, ready, io.Discard, io.Discard)
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() { done <- forwarder.ForwardPorts() }()
			<-ready
			ports, err := forwarder.GetPorts()
			require.NoError(t, err)
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			response, err := client.Post(fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Local), "text/plain", bytes.NewReader([]byte("hello")))
			require.NoError(t, err)
			body, err := io.ReadAll(response.Body)
			assert.NoError(t, err)
			assert.Equal(t, "hello", string(body))
			assert.NoError(t, response.Body.Close())
			close(stop)
			assert.NoError(t, <-done)
			w.end()
		})
	}
}
