package memnet

import (
	"container/list"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// DefaultBufferBytes is how much of a response body a Transport holds for a
// client that does not read before the handler's writes block.
const DefaultBufferBytes = 64 << 10

// Transport is an [http.RoundTripper] that calls Handler inside the process. The
// handler sees what the handler of an HTTP/2 server over TLS would see, the client
// what would come off the wire: RoundTrip returns when the handler flushes, fills a
// 4 KiB chunk or returns, whichever comes first, and the body streams from there on.
//
// Cancelling the request's context, or closing the response body early, cancels
// the handler's context and makes its writes fail. Values and deadlines of the
// client's context do not cross over, as on a network. A handler that panics
// breaks the response off; the client gets [io.ErrUnexpectedEOF], or the error
// that the handler passed to the Abort(error) method of its response writer.
//
// Unlike [http.Transport] it never asks for gzip by itself. Its fields must
// not change after the first request.
type Transport struct {
	// Handler serves every request that is not an upgrade.
	Handler http.Handler
	// Upgrade serves requests with "Connection: Upgrade", which need a real
	// connection; see UpgradeTransport. If nil such requests fail.
	Upgrade http.RoundTripper
	// PeerCertificates is the client's verified chain, leaf first, as the
	// handler finds it in Request.TLS. Usually empty.
	PeerCertificates []*x509.Certificate
	// BufferBytes bounds a response body's unread bytes. Zero means DefaultBufferBytes.
	BufferBytes int
	// OnPanic, if set, is called with every panic of a handler except
	// http.ErrAbortHandler, before the client sees the broken response.
	OnPanic func(value any, stack []byte)

	tlsOnce sync.Once
	tls     *tls.ConnectionState

	mu      sync.Mutex
	running list.List // of the exchanges, the newest first
	closed  bool
	drained chan struct{} // closed when none is running; made by Wait
}

// RoundTrip calls the handler in a goroutine and returns when the response has begun.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if wantsUpgrade(req.Header) {
		if t.Upgrade == nil {
			return nil, refuse(req, errors.New("the request asks for a connection upgrade, which needs Transport.Upgrade"))
		}
		return t.Upgrade.RoundTrip(req)
	}
	switch {
	case req.URL == nil:
		return nil, refuse(req, errors.New("nil Request.URL"))
	case req.Method == http.MethodConnect:
		return nil, refuse(req, errors.New("method CONNECT needs a connection"))
	case t.Handler == nil:
		return nil, refuse(req, errors.New("Transport.Handler is not set"))
	}
	if err := req.Context().Err(); err != nil {
		closeBody(req)
		return nil, err
	}

	ctx, cancel := context.WithCancel(context.Background())
	x := newExchange(t, req, cancel)
	sreq, err := t.serverRequest(ctx, req, x.body)
	if err == nil {
		err = t.add(x)
	}
	if err != nil {
		cancel()
		closeBody(req)
		return nil, err
	}
	if ctx := x.clientCtx; ctx.Done() != nil {
		x.stopWatch = context.AfterFunc(ctx, func() { x.sever(ctx.Err(), errClientGone, true) })
	}
	go x.serve(t.Handler, sreq)
	return x.response(req)
}

// refuse closes the body, as a RoundTripper must, and says which request failed.
func refuse(req *http.Request, err error) error {
	closeBody(req)
	return fmt.Errorf("memnet: %s %s: %w", req.Method, req.URL, err)
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// Close refuses later requests and breaks off those in flight: handlers find their
// context cancelled, clients get io.ErrUnexpectedEOF. It does not wait; Wait does.
func (t *Transport) Close() error {
	t.Break(io.ErrUnexpectedEOF)
	return nil
}

// Break is Close, but clients with a request in flight get the error lost, for
// example a connection reset.
func (t *Transport) Break(lost error) {
	t.mu.Lock()
	t.closed = true
	var running []*exchange
	for e := t.running.Front(); e != nil; e = e.Next() {
		running = append(running, e.Value.(*exchange))
	}
	t.mu.Unlock()
	for _, x := range running {
		x.sever(lost, errTransportClosed, false)
	}
}

// Wait returns when no handler is running, or when ctx ends. It may be called
// at any time; after Close no handler can start, so none runs once it returns.
func (t *Transport) Wait(ctx context.Context) error {
	t.mu.Lock()
	if t.running.Len() == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.drained == nil {
		t.drained = make(chan struct{})
	}
	drained := t.drained
	t.mu.Unlock()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("memnet: waiting for handlers to return: %w", context.Cause(ctx))
	}
}

// add counts an exchange as running.
func (t *Transport) add(x *exchange) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fmt.Errorf("memnet: transport closed: %w", net.ErrClosed)
	}
	x.place = t.running.PushFront(x)
	return nil
}

// remove is the last call a handler's goroutine makes.
func (t *Transport) remove(x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running.Remove(x.place)
	if t.running.Len() == 0 && t.drained != nil {
		close(t.drained)
		t.drained = nil
	}
}

// tlsState makes the connection count as secure. Handlers only read it, so all
// requests share one, as requests on one connection do.
func (t *Transport) tlsState() *tls.ConnectionState {
	t.tlsOnce.Do(func() {
		t.tls = &tls.ConnectionState{
			Version:            tls.VersionTLS13,
			HandshakeComplete:  true,
			CipherSuite:        tls.TLS_AES_128_GCM_SHA256,
			NegotiatedProtocol: "h2",
			PeerCertificates:   t.PeerCertificates,
		}
	})
	return t.tls
}
