package etcd

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"snowglobe.test/internal/conns"
)

// clientListener closes its connections together with itself. gRPC would wait
// two minutes for one that has not said anything yet.
type clientListener struct {
	net.Listener
	open conns.Set
}

func (l *clientListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.open.Add(conn), nil
}

func (l *clientListener) Close() error {
	err := l.Listener.Close()
	l.open.CloseAll()
	return err
}

// http2Start is how a connection starts that speaks HTTP/2, and so gRPC. No
// method of HTTP/1 is shorter, and none is called that.
const http2Start = "PRI"

// readHeaderTimeout is how long etcd waits for the header of an HTTP request.
const readHeaderTimeout = 5 * time.Minute

// protocolSwitch lets gRPC have the connections that speak HTTP/2, and serves
// HTTP/1 on the others. It does so where gRPC shakes hands, in a goroutine of
// the connection's own that gRPC joins when it stops.
type protocolSwitch struct {
	credentials.TransportCredentials
	http *http.Server
}

func newProtocolSwitch(handler http.Handler) *protocolSwitch {
	return &protocolSwitch{insecure.NewCredentials(), &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog:          log.New(io.Discard, "", 0), // mistakes of clients, as in etcd
	}}
}

// ServerHandshake implements credentials.TransportCredentials.
func (p *protocolSwitch) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	start := make([]byte, len(http2Start))
	if _, err := io.ReadFull(raw, start); err != nil {
		return nil, nil, err
	}
	conn := &rereadConn{Conn: raw, reader: io.MultiReader(bytes.NewReader(start), raw)}
	if string(start) == http2Start {
		return p.TransportCredentials.ServerHandshake(conn)
	}
	if err := raw.SetDeadline(time.Time{}); err != nil { // gRPC's, for its handshake
		return nil, nil, err
	}
	_ = p.http.Serve(&httpConn{Conn: conn, closed: make(chan struct{})})
	return nil, nil, credentials.ErrConnDispatched
}

// rereadConn is a connection whose first bytes are read once more.
type rereadConn struct {
	net.Conn
	reader io.Reader
}

func (c *rereadConn) Read(b []byte) (int, error) { return c.reader.Read(b) }

// httpConn is a connection, and the listener that yields it and nothing else.
// The listener ends when the connection has been closed.
type httpConn struct {
	net.Conn
	accepted bool
	once     sync.Once
	closed   chan struct{}
}

func (c *httpConn) Accept() (net.Conn, error) {
	if c.accepted {
		<-c.closed
		return nil, io.EOF
	}
	c.accepted = true
	return c, nil
}

func (c *httpConn) Addr() net.Addr { return c.LocalAddr() }

func (c *httpConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.closed) })
	return err
}
