package kubelet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"snowglobe.test/fakes/stub"
)

// errLeft is the cause that ends the context of what a client has left.
var errLeft = errors.New("the client has closed the connection")

// taken is the response of a request whose connection an upgrade takes over. It keeps
// hold of the connection, and notices when the client leaves.
type taken struct {
	http.ResponseWriter
	cancel context.CancelCauseFunc
	conn   net.Conn
}

// take returns the response that the libraries for streams are given, and a context
// that ends when the client leaves. Upstream's libraries log what clients do; to a fake
// that is no news.
func take(w http.ResponseWriter, r *http.Request) (*taken, context.Context) {
	ctx, cancel := context.WithCancelCause(klog.NewContext(r.Context(), logr.Discard()))
	return &taken{ResponseWriter: w, cancel: cancel}, ctx
}

// Hijack implements http.Hijacker.
func (t *taken) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(t.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take the connection over: %w", err)
	}
	ahead, err := buffered.Reader.Peek(buffered.Reader.Buffered())
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	t.conn = &watched{conn, t.cancel}
	// The server's own reader would end the context, and say less about why.
	reader := io.MultiReader(bytes.NewReader(bytes.Clone(ahead)), conn)
	return t.conn, bufio.NewReadWriter(bufio.NewReader(reader), bufio.NewWriter(t.conn)), nil
}

// breakOff closes the connection without a goodbye.
func (t *taken) breakOff() {
	if t.conn != nil {
		stub.Break(t.conn.(*watched).Conn)
	}
}

// release closes the connection, if it was taken over.
func (t *taken) release() {
	t.cancel(nil)
	if t.conn != nil {
		_ = t.conn.Close() // the client may have done so
	}
}

// watched is a connection that tells when it is closed, which upstream's WebSocket
// does as soon as it can't be read.
type watched struct {
	net.Conn
	left context.CancelCauseFunc
}

// Close implements net.Conn.
func (w *watched) Close() error {
	w.left(errLeft)
	return quiet{w.Conn}.Close()
}

// quiet is a connection that has no error to tell when it is closed. Upstream's SPDY
// would wait a second for a reader to whom it can pass it on.
type quiet struct{ net.Conn }

// Close implements net.Conn.
func (q quiet) Close() error {
	_ = q.Conn.Close()
	return nil
}
