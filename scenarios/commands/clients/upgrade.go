package clients

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"snowglobe.test/scenarios/story"
)

// upgrade turns a request into a SPDY connection. client-go's own round tripper dials, and
// the way to the API servers is for requests. It is for one connection.
type upgrade struct {
	transport http.RoundTripper
	url       *url.URL
	conn      upgradedConn
	streams   httpstream.Connection // nil until the API server has agreed
}

// upgrade is that of a request as the script's current user.
func (c *Clients) upgrade(path string) (*upgrade, error) {
	config, err := c.Config(story.ScriptAgent)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host + path)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return &upgrade{transport: transport, url: target}, nil
}

// RoundTrip implements http.RoundTripper.
func (u *upgrade) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	r.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	response, err := u.transport.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusSwitchingProtocols {
		u.conn.ReadWriteCloser = response.Body.(io.ReadWriteCloser) // as net/http promises
		response.Body = http.NoBody                                 // which the caller closes
	}
	return response, err
}

// NewConnection implements httpstream.UpgradeRoundTripper.
func (u *upgrade) NewConnection(response *http.Response) (httpstream.Connection, error) {
	if u.conn.ReadWriteCloser == nil {
		return nil, refusal(response)
	}
	var err error
	u.streams, err = spdy.NewClientConnection(u.conn)
	return u.streams, err
}

// wait returns when nothing of a connection that has been closed is left.
func (u *upgrade) wait() {
	if u.streams != nil {
		<-u.streams.CloseChan()
	}
}

// refusal is why a connection was not upgraded, as the API server says.
func refusal(response *http.Response) error {
	content, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	if err != nil {
		return fmt.Errorf("read the answer %s: %w", response.Status, err)
	}
	var status metav1.Status
	if err := runtime.DecodeInto(scheme.Codecs.UniversalDecoder(), content, &status); err != nil {
		return errors.New(response.Status)
	}
	return apierrors.FromObject(&status)
}

// upgradedConn is the connection of an upgraded request as SPDY takes it, which reads,
// writes and closes alone.
type upgradedConn struct {
	net.Conn // nil
	io.ReadWriteCloser
}

// Read implements io.Reader.
func (u upgradedConn) Read(p []byte) (int, error) { return u.ReadWriteCloser.Read(p) }

// Write implements io.Writer.
func (u upgradedConn) Write(p []byte) (int, error) { return u.ReadWriteCloser.Write(p) }

// Close does not say that it has been closed before. To SPDY that is an error, which it
// holds for a second for the client to read, longer than the script may last.
func (u upgradedConn) Close() error {
	_ = u.ReadWriteCloser.Close()
	return nil
}
