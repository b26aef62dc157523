package kubelet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"

	gwebsocket "github.com/gorilla/websocket"
	clientportforward "k8s.io/client-go/tools/portforward"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"snowglobe.test/fakes/stub"
)

// forwarding is a port-forward that is going on.
type forwarding struct {
	kubelet  *Kubelet
	taken    *taken
	request  Request
	protocol string
	forward  func(ctx context.Context, port int, conn net.Conn) error
	readers  sync.WaitGroup // they end with the streams
}

// servePortForward serves the streams of SPDY, of SPDY in a WebSocket, and the channels
// of a WebSocket.
func (k *Kubelet) servePortForward(w http.ResponseWriter, r *http.Request, request Request, answer Answer) {
	if answer.Forward == nil {
		stub.WriteError(w, fmt.Errorf("the rule that answers the port-forward to pod %s/%s has no Forward: set Answer.Forward", request.Namespace, request.Pod))
		return
	}
	taken, ctx := take(w, r)
	defer taken.release()
	f := &forwarding{kubelet: k, taken: taken, request: request, forward: answer.Forward}
	r = r.WithContext(ctx)
	switch {
	case wsstream.IsWebSocketRequestWithTunnelingProtocol(r):
		f.serveTunnel(r)
	case wsstream.IsWebSocketRequest(r):
		f.serveWebSocket(r)
	default:
		f.serveSPDY(r)
	}
}

// one forwards one connection, and tells the client what has gone wrong.
func (f *forwarding) one(ctx context.Context, port int, data io.ReadWriter, failure io.Writer) {
	session, err := f.kubelet.begin(f.request, f.protocol, port), errNoReturn
	defer func() { f.kubelet.end(session, 0, err) }()
	err = pipe(ctx, data, &f.readers, func(ctx context.Context, conn net.Conn) error { return f.forward(ctx, port, conn) })
	switch {
	case err == nil:
	case errors.Is(err, stub.ErrBreak):
		f.taken.breakOff()
	default:
		// The client may be gone.
		_, _ = fmt.Fprintf(failure, "error forwarding port %d to pod %s, uid %s: %v", port, f.request.Pod, f.request.UID, err)
	}
}

func (f *forwarding) serveSPDY(r *http.Request) {
	protocol, err := httpstream.Handshake(r, f.taken, portforward.SupportedProtocols)
	if err != nil {
		return // the client knows
	}
	f.protocol = protocol
	arrivals := newArrivals(r.Context())
	conn := spdy.NewResponseUpgrader().UpgradeResponse(f.taken, r, checkPort(arrivals.accept))
	if conn != nil {
		arrivals.watch(conn, f.taken)
		f.serveStreams(r.Context(), arrivals, conn)
	}
}

// serveTunnel serves SPDY whose frames are the messages of a WebSocket.
func (f *forwarding) serveTunnel(r *http.Request) {
	f.protocol = portforward.WebsocketsSPDYTunnelingPortForwardV1
	if !slices.Contains(gwebsocket.Subprotocols(r), f.protocol) {
		stub.WriteError(f.taken, text(http.StatusBadRequest, "unable to upgrade: no tunneling spdy protocols provided"))
		return
	}
	upgrader := gwebsocket.Upgrader{Subprotocols: []string{f.protocol}, CheckOrigin: func(*http.Request) bool { return true }}
	ws, err := upgrader.Upgrade(f.taken, r, nil)
	if err != nil {
		return // the client knows
	}
	arrivals := newArrivals(r.Context())
	tunnel := clientportforward.NewTunnelingConnectionWithLogger(klog.FromContext(r.Context()), ws)
	conn, err := spdy.NewServerConnection(quiet{tunnel}, checkPort(arrivals.accept))
	if err != nil {
		return // it is closed
	}
	arrivals.watch(conn, f.taken)
	f.serveStreams(r.Context(), arrivals, conn)
}

// checkPort refuses streams that don't say which port they are for, and what they
// carry.
func checkPort(accept httpstream.NewStreamHandler) httpstream.NewStreamHandler {
	return func(stream httpstream.Stream, replied <-chan struct{}) error {
		if port, err := strconv.ParseUint(stream.Headers().Get(portforward.PortHeader), 10, 16); err != nil || port < 1 {
			return fmt.Errorf("invalid port %q", stream.Headers().Get(portforward.PortHeader))
		}
		switch kind := stream.Headers().Get(portforward.StreamType); kind {
		case portforward.StreamTypeData, portforward.StreamTypeError:
			return accept(stream, replied)
		default:
			return fmt.Errorf("invalid stream type %q", kind)
		}
	}
}

// serveStreams pairs the streams for data and errors, and forwards each pair, until the
// client leaves.
func (f *forwarding) serveStreams(ctx context.Context, arrivals *arrivals, conn httpstream.Connection) {
	var pairs sync.WaitGroup
	waiting := map[string]httpstream.Stream{} // for the other of its pair
	for {
		stream, err := arrivals.next(0)
		if err != nil {
			break
		}
		id := pairID(stream)
		other := waiting[id]
		if other == nil {
			waiting[id] = stream
			continue
		}
		delete(waiting, id)
		data, failure := stream, other
		if data.Headers().Get(portforward.StreamType) != portforward.StreamTypeData {
			data, failure = other, stream
		}
		port, _ := strconv.Atoi(data.Headers().Get(portforward.PortHeader)) // it has been checked
		pairs.Go(func() {
			defer arrivals.forget(conn, data, failure)
			defer func() { _, _ = data.Close(), failure.Close() }() // the client may be gone
			f.one(ctx, port, data, failure)
		})
	}
	arrivals.shut(conn)
	pairs.Wait()
	f.readers.Wait()
}

// pairID is what the two streams of a connection have in common. Old clients say
// nothing; they open the streams for errors and for data right after each other.
func pairID(stream httpstream.Stream) string {
	if id := stream.Headers().Get(portforward.PortForwardRequestIDHeader); id != "" {
		return id
	}
	id := stream.Identifier()
	if stream.Headers().Get(portforward.StreamType) == portforward.StreamTypeData {
		id -= 2
	}
	return strconv.Itoa(int(id))
}

// serveWebSocket serves a pair of channels for each port that the query names.
func (f *forwarding) serveWebSocket(r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		stub.WriteError(f.taken, text(http.StatusBadRequest, "%v", err))
		return
	}
	var channels []wsstream.ChannelType
	for range options.Ports {
		channels = append(channels, wsstream.ReadWriteChannel, wsstream.WriteChannel)
	}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		"": {Binary: true, Channels: channels},
		"v4." + wsstream.ChannelWebSocketProtocol:       {Binary: true, Channels: channels},
		"v4." + wsstream.Base64ChannelWebSocketProtocol: {Binary: false, Channels: channels},
	})
	protocol, ends, err := conn.Open(f.taken, r)
	if err != nil {
		return // the client knows
	}
	f.protocol = protocol
	var pairs sync.WaitGroup
	for i, port := range options.Ports {
		data, failure := ends[2*i], ends[2*i+1]
		pairs.Go(func() {
			defer func() { _, _ = data.Close(), failure.Close() }()
			// Both channels begin with the number of the port.
			number := binary.LittleEndian.AppendUint16(nil, uint16(port))
			_, _ = data.Write(number)
			_, _ = failure.Write(number)
			f.one(r.Context(), int(port), data, failure)
		})
	}
	pairs.Wait()
	_ = conn.Close() // the client may have done so
	f.readers.Wait()
}
