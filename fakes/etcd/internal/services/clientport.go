package services

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
)

// http2Start is the beginning of every HTTP/2 connection, and so of gRPC. No
// HTTP/1 method is shorter, and none has this name.
const http2Start = "PRI"

// readHeaderTimeout is how long etcd waits for the header of an HTTP request.
const readHeaderTimeout = 5 * time.Minute

// protocolSwitch leaves HTTP/2 connections to gRPC and serves HTTP/1 on the others,
// in gRPC's handshake: its goroutine per connection is joined when gRPC stops.
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

// rereadConn is a connection that returns its first bytes a second time.
type rereadConn struct {
	net.Conn
	reader io.Reader
}

func (c *rereadConn) Read(b []byte) (int, error) { return c.reader.Read(b) }

// httpConn is a connection, and a listener that accepts only it and ends with it.
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
