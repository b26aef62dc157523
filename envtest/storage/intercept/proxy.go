package intercept

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

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

	failFast atomic.Bool
	mu       sync.Mutex
	closed   bool
	open     map[*proxyConn]struct{}
}

// DialContext connects to a member, by way of the proxy.
func (p *Proxy) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	behind, err := p.connect(ctx, network, address)
	if err != nil && !p.failFast.Load() {
		return nil, err
	}
	c := newProxyConn(p, behind)
	if !p.serve(c) {
		c.release()
		return nil, errors.New("the API server has ended")
	}
	conn, err := c.listener.DialContext(ctx)
	if err != nil {
		c.end()
		return nil, err
	}
	return &clientConn{conn, c.end}, nil
}

// connect makes a connection to a member.
func (p *Proxy) connect(ctx context.Context, network, address string) (*grpc.ClientConn, error) {
	conn, err := p.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	transport := insecure.NewCredentials()
	if p.TLS != nil {
		transport = credentials.NewTLS(p.TLS)
	}
	dialed := make(chan net.Conn, 1)
	dialed <- conn
	behind, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(transport),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			select {
			case conn := <-dialed:
				return conn, nil
			default: // whether to dial again is for the client to say
				return nil, net.ErrClosed
			}
		}),
		grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(frames{}), grpc.MaxCallRecvMsgSize(math.MaxInt32)),
		// As upstream's clients, which would notice a network that is gone.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the store at %s: %w", address, err), conn.Close())
	}
	behind.Connect()
	for state := behind.GetState(); state != connectivity.Ready; state = behind.GetState() {
		if state == connectivity.TransientFailure || !behind.WaitForStateChange(ctx, state) {
			_, _ = behind.Close(), conn.Close()
			return nil, fmt.Errorf("connect to the store at %s: it does not answer as an etcd", address)
		}
	}
	return behind, nil
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

// FailFast is told that the API server stops. Upstream's clients try again for
// minutes when the store is gone, and some of upstream's shutdown waits for them;
// from now on they are told to give up.
func (p *Proxy) FailFast() { p.failFast.Store(true) }

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

// frames is a gRPC codec that leaves messages as they are: who passes them on has
// no need to read them.
type frames struct{}

// Marshal implements encoding.Codec.
func (frames) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

// Unmarshal implements encoding.Codec.
func (frames) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = data
	return nil
}

// Name implements encoding.Codec. What is in the frames is protobuf.
func (frames) Name() string { return "proto" }
