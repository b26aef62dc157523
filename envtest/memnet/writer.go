package memnet

import (
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// responseWriter is the handler's side of an exchange. Like an HTTP/2 server's,
// it supports Flush, CloseNotify and deadlines, and cannot be hijacked.
type responseWriter struct{ x *exchange }

var (
	_ http.Flusher = responseWriter{}
	//lint:ignore SA1019 upstream's wrappers look for it
	_ http.CloseNotifier = responseWriter{}
)

// Header may change until WriteHeader, its trailers until the handler returns.
func (w responseWriter) Header() http.Header { return w.x.header }

// WriteHeader fixes status and header, sent with the first chunk, flush or return.
func (w responseWriter) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	if status < 200 {
		w.x.inform(status)
		return
	}
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	if !w.x.wroteHeader {
		w.x.writeHeader(status)
	}
}

// Write takes a part of the body, and blocks while the client is a buffer behind.
func (w responseWriter) Write(p []byte) (int, error) { return w.x.write(p) }

// WriteString is Write for a string.
func (w responseWriter) WriteString(s string) (int, error) { return w.x.write([]byte(s)) }

// Flush lets the client see all that was written.
func (w responseWriter) Flush() { _ = w.FlushError() }

// FlushError is Flush; it returns an error once the client is gone.
func (w responseWriter) FlushError() error {
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	if w.x.handlerErr != nil {
		return w.x.handlerErr
	}
	if !w.x.wroteHeader {
		w.x.writeHeader(http.StatusOK)
	}
	w.x.publish()
	return nil
}

// Abort breaks the response off after the flushed bytes; the client then gets cause.
func (w responseWriter) Abort(cause error) { w.x.sever(cause, errHandlerReturned, false) }

// CloseNotify returns a channel that receives once when the exchange ends.
func (w responseWriter) CloseNotify() <-chan bool {
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	if w.x.notify == nil {
		w.x.notify = make(chan bool, 1)
		if w.x.handlerErr != nil {
			w.x.notify <- true
		}
	}
	return w.x.notify
}

// SetReadDeadline makes reads of the request body fail from then on.
func (w responseWriter) SetReadDeadline(deadline time.Time) error {
	if w.x.body != nil {
		w.x.body.setDeadline(deadline)
	}
	return nil
}

// SetWriteDeadline breaks the response off at deadline unless the handler returned.
func (w responseWriter) SetWriteDeadline(deadline time.Time) error {
	expire := func() { w.x.breakOff(os.ErrDeadlineExceeded) }
	left := time.Until(deadline)
	if !deadline.IsZero() && left <= 0 {
		expire() // at once, so that the next write already fails
		return nil
	}
	w.x.mu.Lock()
	defer w.x.mu.Unlock()
	if w.x.expire != nil {
		w.x.expire.Stop()
		w.x.expire = nil
	}
	if !deadline.IsZero() && w.x.handlerErr == nil {
		w.x.expire = time.AfterFunc(left, expire)
	}
	return nil
}

// EnableFullDuplex does nothing: reading and writing never exclude each other.
func (w responseWriter) EnableFullDuplex() error { return nil }

// inform passes a 1xx status to the client's httptrace; nothing else can observe it.
func (x *exchange) inform(status int) {
	trace := httptrace.ContextClientTrace(x.clientCtx)
	if trace == nil {
		return
	}
	if status == http.StatusContinue {
		if trace.Got100Continue != nil {
			trace.Got100Continue()
		}
		return
	}
	if trace.Got1xxResponse == nil {
		return
	}
	if err := trace.Got1xxResponse(status, textproto.MIMEHeader(wireHeader(x.header))); err != nil {
		x.sever(err, errClientGone, true)
	}
}

// writeHeader fixes the status and the header. Called with mu held.
func (x *exchange) writeHeader(status int) {
	x.wroteHeader = true
	x.status = status
	x.snapshot = wireHeader(x.header)
	_, x.typed = x.header["Content-Type"] // even a nil value, which means: do not sniff
	_, x.dated = x.header["Date"]
	if v := x.snapshot.Get("Content-Length"); v != "" {
		n, err := strconv.ParseUint(v, 10, 63)
		if err != nil {
			delete(x.snapshot, "Content-Length")
			return
		}
		x.declared = int64(n)
	}
}

func (x *exchange) write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.handlerErr != nil {
		return 0, x.handlerErr
	}
	if !x.wroteHeader {
		x.writeHeader(http.StatusOK)
	}
	if !bodyAllowed(x.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if x.declared >= 0 && x.wrote+int64(len(p)) > x.declared {
		return 0, http.ErrContentLength
	}
	x.wrote += int64(len(p))
	if x.head && x.began {
		return len(p), nil
	}
	n := x.ring.write(p)
	if n == len(p) && x.ring.n-x.ready <= chunkBytes {
		return n, nil
	}
	x.publish()
	if n == len(p) || x.head {
		return len(p), nil
	}
	x.rest = p[n:]
	for len(x.rest) > 0 && x.handlerErr == nil {
		x.writable.Wait()
	}
	if x.handlerErr != nil {
		x.rest = nil // p is the caller's again
		return n, x.handlerErr
	}
	return len(p), nil
}

// publish flushes header and ring. Called with mu held, after writeHeader.
func (x *exchange) publish() {
	if !x.began {
		x.begin()
	}
	if x.head {
		x.ring.truncate(0)
	}
	x.ready = x.ring.n
	x.readable.Broadcast()
}

// begin completes the header with what the first chunk reveals: content type,
// length and trailers. Called with mu held, once.
func (x *exchange) begin() {
	x.began = true
	h := x.snapshot
	if v, ok := h["Trailer"]; ok {
		x.announced = trailerNames(v)
		delete(h, "Trailer")
	}
	if x.returned {
		x.collectTrailers()
		x.empty = x.ring.n == 0 && len(x.announced) == 0 && len(x.trailer) == 0
	}
	if bodyAllowed(x.status) {
		if !x.typed && x.ring.n > 0 && h.Get("Content-Encoding") == "" {
			h["Content-Type"] = []string{http.DetectContentType(x.ring.front(sniffBytes))}
		}
		// For HEAD an empty body does not mean length 0: handlers may skip it on purpose.
		if x.returned && x.declared < 0 && (x.ring.n > 0 || !x.head) {
			x.declared = int64(x.ring.n)
			h["Content-Length"] = []string{strconv.Itoa(x.ring.n)}
		}
	}
	if !x.dated {
		h["Date"] = []string{time.Now().UTC().Format(http.TimeFormat)}
	}
}

// collectTrailers takes the announced trailers, and those marked by
// http.TrailerPrefix, from the handler's header. Called with mu held.
func (x *exchange) collectTrailers() {
	for _, name := range x.announced {
		if values, ok := x.header[name]; ok {
			x.setTrailer(name, values)
		}
	}
	for name, values := range x.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			for _, name := range trailerNames([]string{name}) {
				x.setTrailer(name, values)
			}
		}
	}
}

func (x *exchange) setTrailer(name string, values []string) {
	if x.trailer == nil {
		x.trailer = http.Header{}
	}
	x.trailer[name] = slices.Clone(values)
}
