package intercept

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"snowglobe.test/envtest/fault"
)

// Proxy is a gRPC proxy between etcd clients that others make, such as upstream's
// own, and the members of a store. Behind each connection to it is one to the same
// member, with which it comes and goes, and every call is passed on. Calls that a
// store point is about meet the rules first; watches and keep-alives do not, since
// API servers make theirs by a Connection.
type Proxy struct {
	// Injector is asked; nil injects nothing.
	Injector *fault.Injector
	// Dial reaches the members.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is spoken to the members; nil is plain text, as is spoken to the proxy.
	TLS *tls.Config

	mu       sync.Mutex
	failFast bool
	closed   bool
	open     map[*proxyConn]struct{}
}

var errProxyClosed = errors.New("the API server has ended")

// DialContext connects to a member, by way of the proxy.
func (p *Proxy) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c := newProxyConn(p)
	if err := c.connect(ctx, network, address); err != nil && !p.failsFast() {
		c.release()
		return nil, err
	}
	if !p.serve(c) {
		c.release()
		return nil, errProxyClosed
	}
	conn, err := c.listener.DialContext(ctx)
	if err != nil {
		c.end()
		return nil, err
	}
	return &clientConn{conn, c.end}, nil
}

// FailFast is told that the API server stops. Upstream's clients try again for
// minutes when the store is gone, and some of upstream's shutdown waits for them;
// from now on they are told to give up.
func (p *Proxy) FailFast() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failFast = true
}

func (p *Proxy) failsFast() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failFast
}

// Close breaks off every call and returns when all have ended, or ctx ends.
func (p *Proxy) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	open := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	for _, c := range open {
		c.end()
	}
	for _, c := range open {
		select {
		case <-c.ended:
		case <-ctx.Done():
			return fmt.Errorf("close the proxy of the store: a connection has not ended: %w", context.Cause(ctx))
		}
	}
	return nil
}

// serve has a connection served, unless the proxy is closed.
func (p *Proxy) serve(c *proxyConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if p.open == nil {
		p.open = map[*proxyConn]struct{}{}
	}
	p.open[c] = struct{}{}
	go func() {
		defer close(c.ended)
		c.serve()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, c)
	}()
	return true
}
