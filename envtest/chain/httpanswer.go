package chain

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
)

// answer is the writer of a request at the edge. It asks when the answer is about
// to be sent, status and first bytes, and again for each later part. It keeps
// nothing back, so an answer can only be replaced before it has begun. A
// connection that the handler takes over is out of its sight.
type answer struct {
	http.ResponseWriter
	x      *bendable
	header http.Header // what it was before the handler

	begun     bool // the answer has been asked about
	sent      bool // its first bytes are on their way
	unflushed bool
	silent    bool // nothing more of it is sent
	ending    bool // nothing more but the first bytes
	hijacked  bool
}

var _ responsewriter.UserProvidedDecorator = (*answer)(nil)

func newAnswer(x *bendable, w http.ResponseWriter) *answer {
	return &answer{ResponseWriter: w, x: x, header: w.Header().Clone()}
}

// Unwrap implements responsewriter.UserProvidedDecorator.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	informs := code < http.StatusOK && code != http.StatusSwitchingProtocols
	if informs && !a.silent || !informs && a.begin() {
		a.ResponseWriter.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if !a.begin() || a.sent && !a.goesOn() {
		return len(p), nil
	}
	return a.pass(p)
}

// pass sends something that need not be asked about.
func (a *answer) pass(p []byte) (int, error) {
	a.sent, a.unflushed = true, true
	return a.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (a *answer) Flush() {
	if flusher, ok := a.ResponseWriter.(http.Flusher); ok && a.begin() {
		a.sent, a.unflushed = true, false
		flusher.Flush()
	}
}

// Hijack implements http.Hijacker.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	hijacker, ok := a.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, nil, http.ErrNotSupported
	}
	a.hijacked = true
	return hijacker.Hijack()
}

// finish is for a handler that has returned: it may have written nothing.
func (a *answer) finish() {
	if !a.hijacked {
		a.begin()
	}
}

// begin asks about the answer, once, and says whether it may be written.
func (a *answer) begin() bool {
	if a.begun {
		return !a.silent
	}
	a.begun = true
	if !a.x.edge.Active() {
		return true
	}
	d, err := a.x.at(fault.After)
	if err != nil {
		a.breakOff(io.ErrUnexpectedEOF)
		return false
	}
	switch d.Kind {
	case fault.Fail:
		a.replace(d.Err())
	case fault.Drop:
		a.x.traced.fate.lose()
		a.end(context.Canceled)
	case fault.Cancel:
		a.ending = true
		a.x.cancel(context.Canceled)
	}
	return !a.silent
}

// goesOn asks about a later part of the answer.
func (a *answer) goesOn() bool {
	if a.silent || a.ending {
		return false
	}
	if !a.x.edge.Active() {
		return true
	}
	a.catchUp()
	d, err := a.x.at(fault.Stream)
	switch {
	case err != nil:
		a.breakOff(io.ErrUnexpectedEOF)
		return false
	case d.Kind == fault.Fail:
		a.breakOff(d.Err())
		return false
	case d.Kind == fault.Cancel:
		a.end(context.Canceled)
		return false
	}
	return d.Kind != fault.Drop
}

// catchUp lets the client see what it was sent, before what comes next may have
// to wait.
func (a *answer) catchUp() {
	if a.unflushed {
		a.Flush()
	}
}

// replace answers with an error instead, and ends the answer there was.
func (a *answer) replace(by error) {
	header := a.ResponseWriter.Header()
	clear(header)
	maps.Copy(header, a.header)
	a.x.fail(a.ResponseWriter, by)
	a.end(errReplaced)
}

var errReplaced = errors.New("the answer was replaced")

func (a *answer) breakOff(cause error) {
	a.x.traced.fate.breakOff(cause)
	a.end(cause)
}

// end sends nothing more, and lets the handler know.
func (a *answer) end(cause error) {
	a.silent = true
	a.x.cancel(cause)
}
