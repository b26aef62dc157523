package scenarios

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

var forwardCommand = command{
	name:  "forward",
	args:  "[-n NAMESPACE] POD PORT",
	least: 2, most: 2,
	summary: "connect to a port of a pod, over WebSocket, and print what it sends",
	details: `It fails if nothing is listening on the port, or if the connection breaks.`,
	example: "forward web-0 80\nstdout 'it snows'",
	prepare: func(flags *pflag.FlagSet) action {
		namespace := namespaceFlag(flags)
		return func(ctx context.Context, s *session, args []string) error {
			port, err := strconv.ParseUint(args[1], 10, 16)
			if err != nil || port == 0 {
				return fmt.Errorf("%w: %q is not a port", errUsage, args[1])
			}
			return s.forward(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/portforward", *namespace, args[0]), args[1])
		}
	},
}

// forwardProtocol is that of port-forward over WebSocket: SPDY in a tunnel.
const forwardProtocol = "SPDY/3.1+" + portforward.PortForwardProtocolV1Name

// forward prints what comes from a port.
func (s *session) forward(ctx context.Context, path, port string) error {
	conn, stop, err := s.webSocket(ctx, path, forwardProtocol)
	if err != nil {
		return err
	}
	defer stop()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	streams, err := spdy.NewClientConnection(quietConn{portforward.NewTunnelingConnection("script", conn)})
	if err != nil {
		return err
	}
	defer func() { <-streams.CloseChan() }()
	defer func() { _ = streams.Close() }()
	failure, data, err := forwardedPort(streams, port)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(data, maxBodyBytes))
	s.out.Write(content)
	if err != nil {
		return err
	}
	said, err := io.ReadAll(io.LimitReader(failure, maxBodyBytes))
	if err == nil && len(said) > 0 {
		err = errors.New(string(said))
	}
	return err
}

// quietConn does not say that it has been closed before. To SPDY that is an error, which
// it holds for a second for somebody to read, longer than the script may last.
type quietConn struct{ net.Conn }

// Close implements net.Conn.
func (q quietConn) Close() error {
	_ = q.Conn.Close()
	return nil
}

// forwardedPort opens the two streams of a connection to a port: of failures, and of what
// is sent. Nothing is sent from here.
func forwardedPort(streams httpstream.Connection, port string) (failure, data httpstream.Stream, err error) {
	open := func(kind string) (httpstream.Stream, error) {
		headers := http.Header{}
		headers.Set(corev1.StreamType, kind)
		headers.Set(corev1.PortHeader, port)
		headers.Set(corev1.PortForwardRequestIDHeader, "0")
		stream, err := streams.CreateStream(headers)
		if err != nil {
			return nil, err
		}
		return stream, stream.Close() // the way there; what comes back can be read
	}
	if failure, err = open(corev1.StreamTypeError); err != nil {
		return nil, nil, err
	}
	data, err = open(corev1.StreamTypeData)
	return failure, data, err
}
