package inject

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"snowglobe.test/envtest/fault/edge"
)

// connection is the client's connection as one request sees it. Once a rule has
// aborted or dropped it, nothing more is sent, not even by upstream's filters, which
// do not notice.
type connection struct {
	broken atomic.Pointer[error] // how; nil as long as it is not
}

var errDropped = errors.New("the request was dropped")

// abort breaks the connection with an error of the network.
func (c *connection) abort(cause error) { c.broken.CompareAndSwap(nil, &cause) }

// drop makes the client wait for a response that never comes.
func (c *connection) drop() { c.abort(errDropped) }

// err is how the connection broke, nil if it did not.
func (c *connection) err() error {
	if cause := c.broken.Load(); cause != nil {
		return *cause
	}
	return nil
}

// aborter is the response writer of a client in the process: it takes the error
// that breaks the connection. Other clients see a reset stream.
type aborter interface{ Abort(cause error) }

// close must be called when upstream has handled the request. If the connection is
// broken it panics with http.ErrAbortHandler, by which net/http closes it.
func (c *connection) close(client context.Context, i *edge.Injector, w http.ResponseWriter) {
	err := c.err()
	if err == nil {
		return
	}
	if errors.Is(err, errDropped) {
		_ = i.Lost(client)
	} else if a, ok := w.(aborter); ok {
		a.Abort(err)
	}
	panic(http.ErrAbortHandler)
}

// statusWriter remembers the status code, and sends nothing on a broken connection.
type statusWriter struct {
	http.ResponseWriter
	conn    *connection
	code    int
	written bool
}

var _ responsewriter.UserProvidedDecorator = (*statusWriter)(nil)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	if w.conn.err() != nil {
		return
	}
	if !w.written {
		w.code, w.written = code, code >= http.StatusOK || code == http.StatusSwitchingProtocols
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(p []byte) (int, error) {
	if w.conn.err() != nil {
		return len(p), nil
	}
	w.written = true
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *statusWriter) Flush() {
	if flusher, ok := w.ResponseWriter.(http.Flusher); ok && w.conn.err() == nil {
		w.written = true
		flusher.Flush()
	}
}

// sent is the status code that was sent, 0 if none was.
func (w *statusWriter) sent() int {
	if w.conn.err() != nil && !w.written {
		return 0
	}
	return w.code
}
