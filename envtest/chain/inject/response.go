package inject

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

// response is the response writer of a call. It asks the rules before the status
// and the first bytes are sent, and before each later write. It buffers nothing, so
// a response can only be replaced before it begins. It does not see what is written
// to a hijacked connection.
type response struct {
	http.ResponseWriter
	call   *call
	header http.Header // what it was before the handler
	code   int         // the handler's, 0 before it is known

	begun     bool // the response has been asked about
	sent      bool // its first bytes are on their way
	unflushed bool
	silent    bool // nothing more of it is sent
	ending    bool // nothing more but the first bytes
	hijacked  bool
}

var _ responsewriter.UserProvidedDecorator = (*response)(nil)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(code int) {
	informs := code < http.StatusOK && code != http.StatusSwitchingProtocols
	if !informs {
		r.code = code
	}
	if informs && !r.silent || !informs && r.begin() {
		r.ResponseWriter.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (r *response) Write(p []byte) (int, error) {
	if !r.begin() || r.sent && !r.goesOn() {
		return len(p), nil
	}
	return r.pass(p)
}

// pass writes without asking.
func (r *response) pass(p []byte) (int, error) {
	r.sent, r.unflushed = true, true
	return r.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (r *response) Flush() {
	if flusher, ok := r.ResponseWriter.(http.Flusher); ok && r.begin() {
		r.sent, r.unflushed = true, false
		flusher.Flush()
	}
}

// Hijack implements http.Hijacker.
func (r *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	hijacker, ok := r.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, nil, http.ErrNotSupported
	}
	r.hijacked = true
	return hijacker.Hijack()
}

// finish must be called when the handler has returned, which may have written nothing.
func (r *response) finish() {
	if !r.hijacked {
		r.begin()
	}
}

// failed says whether the client got no answer, or that of a failure.
func (r *response) failed() bool {
	return r.code >= http.StatusBadRequest || r.silent || r.ending
}

// begin asks about the response, once, and reports whether it may be written.
func (r *response) begin() bool {
	if r.begun {
		return !r.silent
	}
	r.begun = true
	if !r.call.injector.Active() {
		return true
	}
	return edge.Execute(r.call.active.client, r.call.injector, r.call.operation(fault.After), edge.Ways[bool]{
		Proceed: func() bool { return true },
		Fail: func(err error) bool {
			r.replace(err)
			return false
		},
		Drop: func() bool {
			r.call.active.conn.drop()
			return r.end(context.Canceled)
		},
		Cancel: func() bool {
			r.ending = true
			r.call.cancel(context.Canceled)
			return true
		},
		Abort: func(error) bool { return r.abort(io.ErrUnexpectedEOF) },
	})
}

// goesOn asks about a later write, and reports whether it may be made.
func (r *response) goesOn() bool {
	if r.silent || r.ending {
		return false
	}
	if !r.call.injector.Active() {
		return true
	}
	r.catchUp()
	return edge.Execute(r.call.active.client, r.call.injector, r.call.operation(fault.Stream), edge.Ways[bool]{
		Proceed: func() bool { return true },
		Fail:    r.abort,
		Drop:    func() bool { return false },
		Cancel:  func() bool { return r.end(context.Canceled) },
		Abort:   func(error) bool { return r.abort(io.ErrUnexpectedEOF) },
	})
}

// catchUp flushes what was written, since the next write may be held.
func (r *response) catchUp() {
	if r.unflushed {
		r.Flush()
	}
}

// replace sends an error in place of the handler's response.
func (r *response) replace(by error) {
	header := r.ResponseWriter.Header()
	clear(header)
	maps.Copy(header, r.header)
	r.call.fail(r.ResponseWriter, by)
	r.end(errReplaced)
}

var errReplaced = errors.New("the response was replaced")

// abort breaks the connection. It returns false: nothing more may be written.
func (r *response) abort(cause error) bool {
	r.call.active.conn.abort(cause)
	return r.end(cause)
}

// end discards later writes and cancels the handler. It returns false, as abort.
func (r *response) end(cause error) bool {
	r.silent = true
	r.call.cancel(cause)
	return false
}
