package memnet

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

// chunkBytes is how much a handler may write before the response starts without
// a flush: the chunk size of net/http's HTTP/2 server.
const chunkBytes = 4 << 10

// sniffBytes is how much of a body http.DetectContentType looks at.
const sniffBytes = 512

var (
	errClientGone      = fmt.Errorf("memnet: the client has gone away: %w", net.ErrClosed)
	errTransportClosed = fmt.Errorf("memnet: the transport was closed: %w", net.ErrClosed)
	errHandlerReturned = errors.New("memnet: the handler has already returned")
)

// exchange is one request and its response; the handler's side is
// responseWriter, the client's responseBody. Body bytes go to ring; those
// before ready have been flushed and may be read. What does not fit of a
// write is in rest, from where the reader takes it while the writer waits.
type exchange struct {
	transport *Transport
	clientCtx context.Context
	cancel    context.CancelFunc // ends the context of the handler's request
	stopWatch func() bool        // stops watching clientCtx; nil if it cannot end
	body      *requestBody       // nil if the request has none
	head      bool               // the method is HEAD
	place     *list.Element      // among transport.running

	header http.Header // the handler's own, guarded by nothing, as in net/http

	mu       sync.Mutex
	readable sync.Cond // ready, began or clientErr changed
	writable sync.Cond // rest or handlerErr changed

	wroteHeader bool
	status      int
	snapshot    http.Header // the response header; the client's once began
	declared    int64       // Content-Length set by the handler, or -1
	began       bool        // status and snapshot are final
	returned    bool        // the handler has
	typed       bool        // the handler chose a Content-Type, or none
	dated       bool        // likewise Date
	announced   []string    // names of trailers in the header
	trailer     http.Header // set when the handler returns
	empty       bool        // the header was the whole response

	ring  ring
	ready int
	rest  []byte
	wrote int64 // bytes the handler has given

	clientErr  error       // what the client reads after the ready bytes
	handlerErr error       // what the handler's writes return
	notify     chan bool   // CloseNotify's; nil until it is called
	expire     *time.Timer // breaks the response off at the write deadline
}

func newExchange(t *Transport, req *http.Request, cancel context.CancelFunc) *exchange {
	x := &exchange{
		transport: t,
		clientCtx: req.Context(),
		cancel:    cancel,
		head:      req.Method == http.MethodHead,
		header:    http.Header{},
		declared:  -1,
		ring:      ring{limit: cmp.Or(max(t.BufferBytes, 0), DefaultBufferBytes)},
	}
	x.readable.L, x.writable.L = &x.mu, &x.mu
	x.body = newRequestBody(req, func(err error) { x.sever(err, errClientGone, true) })
	return x
}

// serve runs the handler to its end, whatever that end is.
func (x *exchange) serve(h http.Handler, req *http.Request) {
	defer x.transport.remove(x)
	ok := false
	defer func() {
		if !ok { // a panic, or runtime.Goexit, which recovers to nil
			v := recover()
			if report := x.transport.OnPanic; report != nil && v != nil && v != http.ErrAbortHandler {
				report(v, debug.Stack())
			}
			x.breakOff(errHandlerReturned)
		}
		x.finish()
		if req.MultipartForm != nil {
			req.MultipartForm.RemoveAll()
		}
	}()
	h.ServeHTTP(responseWriter{x}, req)
	ok = true
}

// finish completes the response after the handler's return and releases everything.
func (x *exchange) finish() {
	if x.stopWatch != nil {
		x.stopWatch()
	}
	x.mu.Lock()
	x.returned = true
	if x.clientErr == nil {
		if !x.wroteHeader {
			x.writeHeader(http.StatusOK)
		}
		if x.began {
			x.collectTrailers()
		}
		x.publish()
		x.clientErr = io.EOF
		if x.declared > x.wrote && !x.head && bodyAllowed(x.status) {
			x.clientErr = io.ErrUnexpectedEOF
		}
	}
	x.handlerErr = cmp.Or(x.handlerErr, errHandlerReturned)
	if x.expire != nil {
		x.expire.Stop()
	}
	x.wakeAll()
	x.mu.Unlock()
	x.cancel()
	if x.body != nil {
		x.body.end(http.ErrBodyReadAfterClose)
	}
}

// breakOff cuts the response short after the flushed bytes, like a lost connection.
func (x *exchange) breakOff(handler error) {
	x.sever(io.ErrUnexpectedEOF, handler, false)
}

// sever ends the exchange early. The client's reads return the error client, at
// once if discard is set and after the flushed bytes if not. The handler's writes
// return the error handler, and its context is cancelled.
func (x *exchange) sever(client, handler error, discard bool) {
	x.mu.Lock()
	x.rest = nil
	if discard {
		x.ring.truncate(0)
		x.ready = 0
		x.clientErr = client
	} else if x.clientErr == nil {
		x.ring.truncate(x.ready)
		x.clientErr = client
	}
	x.handlerErr = cmp.Or(x.handlerErr, handler)
	x.wakeAll()
	x.mu.Unlock()
	x.cancel()
	if x.body != nil {
		x.body.end(io.ErrUnexpectedEOF)
	}
}

// wakeAll notifies both sides that the exchange has ended. Called with mu held.
func (x *exchange) wakeAll() {
	x.readable.Broadcast()
	x.writable.Broadcast()
	if x.notify != nil {
		select {
		case x.notify <- true:
		default: // already notified
		}
	}
}

// response waits until the response has begun.
func (x *exchange) response(req *http.Request) (*http.Response, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for !x.began && x.clientErr == nil {
		x.readable.Wait()
	}
	if err := x.clientCtx.Err(); err != nil {
		return nil, err
	}
	if !x.began {
		return nil, x.clientErr
	}
	resp := &http.Response{
		Status:        strconv.Itoa(x.status) + " " + http.StatusText(x.status),
		StatusCode:    x.status,
		Proto:         "HTTP/2.0",
		ProtoMajor:    2,
		Header:        x.snapshot,
		Body:          http.NoBody,
		ContentLength: x.declared,
		Request:       req,
	}
	if len(x.announced) > 0 {
		resp.Trailer = make(http.Header, len(x.announced))
		for _, name := range x.announced {
			resp.Trailer[name] = nil
		}
	}
	empty := x.empty && x.clientErr == io.EOF
	if empty && x.declared < 0 && !x.head {
		resp.ContentLength = 0
	}
	if !empty && !x.head {
		resp.Body = &responseBody{x: x, resp: resp}
	}
	return resp, nil
}

// bodyAllowed reports whether a response of this status has a body.
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
