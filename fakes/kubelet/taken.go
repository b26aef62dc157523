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

// errLeft is the cause of a context that ends because the client has left.
var errLeft = errors.New("the client has closed the connection")

// taken is the response of a request whose connection an upgrade takes over. It keeps
// hold of the connection, and notices when the client leaves.
type taken struct {
	http.ResponseWriter
	cancel context.CancelCauseFunc
	conn   net.Conn
}

// take returns the response to pass to upstream's libraries for streams, and a context
// that ends when the client leaves. Its logger drops what these libraries log about clients.
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
	// The server's own reader would end the context too, but with a cause that says less.
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

// watched is a connection that calls left when it is closed. Upstream's WebSocket closes
// it as soon as it can't be read any more.
type watched struct {
	net.Conn
	left context.CancelCauseFunc
}

// Close implements net.Conn.
func (w *watched) Close() error {
	w.left(errLeft)
	return quiet{w.Conn}.Close()
}

// quiet is a connection whose Close returns no error. Upstream's SPDY would wait a second
// for somebody to read that error.
type quiet struct{ net.Conn }

// Close implements net.Conn.
func (q quiet) Close() error {
	_ = q.Conn.Close()
	return nil
}
