package memnet

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"
)

// notSent are the request fields that an HTTP/2 client drops, or sets by itself.
var notSent = [...]string{"Content-Length", "Host", "Keep-Alive", "Proxy-Connection", "Upgrade"}

// serverRequest returns the request as the handler of an HTTP/2 server over TLS
// would get it, sharing nothing that a handler may change with the client's request.
func (t *Transport) serverRequest(ctx context.Context, req *http.Request, body *requestBody) (*http.Request, error) {
	uri := req.URL.RequestURI()
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return nil, fmt.Errorf("memnet: request target %q: %w", uri, err)
	}
	header := wireHeader(req.Header)
	for _, name := range notSent {
		delete(header, name)
	}
	if header.Get("Expect") == "100-continue" {
		delete(header, "Expect") // nothing to wait for: reading pulls the body
	}
	if agent, ok := req.Header["User-Agent"]; !ok {
		header["User-Agent"] = []string{"Go-http-client/2.0"}
	} else if len(agent) == 0 || agent[0] == "" {
		delete(header, "User-Agent")
	}
	out := &http.Request{
		Method:        cmp.Or(req.Method, http.MethodGet),
		URL:           u,
		Proto:         "HTTP/2.0",
		ProtoMajor:    2,
		Header:        header,
		Body:          http.NoBody,
		ContentLength: 0,
		Host:          cmp.Or(req.Host, req.URL.Host),
		RemoteAddr:    Addr{}.String(),
		RequestURI:    uri,
		TLS:           t.tlsState(),
		Trailer:       req.Trailer, // complete once the body has been read
	}
	if body != nil {
		out.Body, out.ContentLength = body, body.length
	}
	if out.ContentLength > 0 || out.ContentLength == 0 && sendsBody(out.Method) {
		header["Content-Length"] = []string{strconv.FormatInt(out.ContentLength, 10)}
	}
	return out.WithContext(ctx), nil
}

// sendsBody reports whether clients send the Content-Length even of an empty body.
func sendsBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// requestBody reads the client's body directly, on the handler's goroutine.
type requestBody struct {
	length int64 // as the client declared it; -1 when unknown
	broken func(error)

	mu     sync.Mutex
	src    io.ReadCloser
	read   int64 // bytes handed on
	err    error // what every later Read returns
	closed bool  // src has been closed
	expire *time.Timer
}

// newRequestBody returns nil when the request has no body.
func newRequestBody(req *http.Request, broken func(error)) *requestBody {
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	length := cmp.Or(req.ContentLength, -1) // 0 is that of a body of unstated length
	return &requestBody{length: length, broken: broken, src: req.Body}
}

// Read returns the client's bytes. When the client's reader fails, or holds
// less than declared, the whole request fails, as it does on the wire.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	err, left := b.err, b.length-b.read
	b.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if b.length >= 0 {
		if left == 0 {
			return 0, io.EOF
		}
		p = p[:min(int64(len(p)), left)]
	}
	n, err := b.src.Read(p)

	b.mu.Lock()
	b.read += int64(n)
	if b.err != nil { // closed or expired meanwhile
		err = b.err
		b.mu.Unlock()
		return n, err
	}
	if err == io.EOF && b.length > b.read {
		err = fmt.Errorf("http: ContentLength=%d with Body length %d", b.length, b.read)
	}
	cause := err
	if err != nil && err != io.EOF {
		err = io.ErrUnexpectedEOF // all a server learns about it
	}
	b.err = err
	b.mu.Unlock()
	if cause != err {
		b.broken(cause)
	}
	return n, err
}

// Close lets the handler close the body; it closes the client's body too.
func (b *requestBody) Close() error {
	b.end(http.ErrBodyReadAfterClose)
	return nil
}

// end makes reads fail with err and closes the client's body, which wakes a Read.
func (b *requestBody) end(err error) {
	b.mu.Lock()
	if b.err == nil || b.err == io.EOF {
		b.err = err
	}
	first := !b.closed
	b.closed = true
	if b.expire != nil {
		b.expire.Stop()
	}
	b.mu.Unlock()
	if first {
		b.src.Close()
	}
}

// setDeadline makes reads fail from the given time on; zero means never.
func (b *requestBody) setDeadline(deadline time.Time) {
	expire := func() { b.end(os.ErrDeadlineExceeded) }
	left := time.Until(deadline)
	if !deadline.IsZero() && left <= 0 {
		expire() // at once, so that the next read already fails
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.expire != nil {
		b.expire.Stop()
		b.expire = nil
	}
	if !deadline.IsZero() && !b.closed {
		b.expire = time.AfterFunc(left, expire)
	}
}
