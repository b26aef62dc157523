package tunnel

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// upgrade turns one request into a SPDY connection over a target's own transport: client-go
// would dial, and there is nothing to dial in the memory of a process.
type upgrade struct {
	transport http.RoundTripper
	url       *url.URL
	conn      io.ReadWriteCloser
	streams   httpstream.Connection // nil until the server has agreed
}

// upgrade is that of a request for a path of the node's server.
func (n *node) upgrade(path string) *upgrade {
	transport, err := rest.TransportFor(n.Config)
	n.Must(err, "the transport of the clients")
	target, err := url.Parse(n.Config.Host + path)
	n.Must(err, "the address of %s", path)
	return &upgrade{transport: transport, url: target}
}

// RoundTrip implements http.RoundTripper.
func (u *upgrade) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	r.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	response, err := u.transport.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusSwitchingProtocols {
		u.conn, _ = response.Body.(io.ReadWriteCloser)
		response.Body = http.NoBody // whose closing is not that of the connection
	}
	return response, err
}

// NewConnection implements spdy.Upgrader. Its error is what the server has answered.
func (u *upgrade) NewConnection(response *http.Response) (httpstream.Connection, error) {
	if u.conn == nil {
		content, err := io.ReadAll(response.Body)
		return nil, errors.Join(errors.New(string(content)), err)
	}
	var err error
	u.streams, err = spdy.NewClientConnection(upgraded{ReadWriteCloser: u.conn})
	return u.streams, err
}

// end closes the connection, and returns when nothing of it is left.
func (u *upgrade) end() {
	if u.streams != nil {
		_ = u.streams.Close()
		<-u.streams.CloseChan()
	}
}

// upgraded is a connection that reads, writes and closes alone, which is all that SPDY does.
type upgraded struct {
	net.Conn // nil
	io.ReadWriteCloser
}

// Read implements io.Reader.
func (u upgraded) Read(p []byte) (int, error) { return u.ReadWriteCloser.Read(p) }

// Write implements io.Writer.
func (u upgraded) Write(p []byte) (int, error) { return u.ReadWriteCloser.Write(p) }

// Close says nothing of a connection that has been closed before: SPDY would keep that error
// for a second, and everybody waiting.
func (u upgraded) Close() error {
	_ = u.ReadWriteCloser.Close()
	return nil
}
