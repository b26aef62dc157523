package intercept

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/memnet"
	"snowglobe.test/internal/left"
)

// Proxy is a gRPC proxy between the members of a store and etcd clients that
// others make, such as upstream's own. For each connection of a client it makes one
// to the same member. The rules are asked about calls that have a store point, but not
// about watches and lease keep-alives: API servers make those through a Connection.
type Proxy struct {
	// Injector asks the rules about calls; nil injects nothing.
	Injector *edge.Injector
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
	// With FailFast, the client gets a connection on which every call fails with errStoreGone.
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

// FailFast makes clients give up, because the API server stops. Upstream's would
// retry for minutes when the store is gone, and some shutdown waits for them.
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
		err := left.Await(ctx, c.ended, "close the proxy of the store: a connection has not ended", ours)
		if err != nil {
			return err
		}
	}
	return nil
}

// frames is a gRPC codec that leaves messages encoded: the proxy only passes them on.
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

// proxyConn is one connection of a Proxy: a server for one client, and a
// connection to the member. When one of the two ends, the other does.
type proxyConn struct {
	proxy    *Proxy
	listener *memnet.Listener
	server   *grpc.Server
	behind   *grpc.ClientConn // to the member; nil if there is none to be reached
	over     context.Context
	end      context.CancelFunc
	pumps    sync.WaitGroup
	ended    chan struct{} // closed when it has been served and released
}

func newProxyConn(p *Proxy, behind *grpc.ClientConn) *proxyConn {
	c := &proxyConn{proxy: p, listener: memnet.Listen(), behind: behind, ended: make(chan struct{})}
	c.over, c.end = context.WithCancel(context.Background())
	c.server = grpc.NewServer(grpc.ForceServerCodec(frames{}), grpc.UnknownServiceHandler(c.handle),
		grpc.WaitForHandlers(true),
		grpc.MaxRecvMsgSize(math.MaxInt32),
		// As etcd, whose clients ping more often than gRPC likes.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}))
	return c
}

// serve passes calls on until one of the two connections ends, and releases both.
func (c *proxyConn) serve() {
	var serving sync.WaitGroup
	serving.Go(func() {
		_ = c.server.Serve(c.listener) // until it is stopped
		c.end()
	})
	if c.behind != nil {
		for c.behind.GetState() == connectivity.Ready && c.behind.WaitForStateChange(c.over, connectivity.Ready) {
		}
		c.end()
	}
	<-c.over.Done()
	c.release()
	serving.Wait()
}

// release gives back what the connection has, whether it has served or not.
func (c *proxyConn) release() {
	c.end()
	c.server.Stop()
	c.pumps.Wait()
	if c.behind != nil {
		_ = c.behind.Close()
	}
}

// clientConn is the client's end of a connection.
type clientConn struct {
	net.Conn
	end context.CancelFunc
}

// Close implements net.Conn.
func (c *clientConn) Close() error {
	defer c.end()
	return c.Conn.Close()
}

// streams are the methods of etcd whose request or answer has many parts.
var streams = map[string]bool{
	pb.KV_RangeStream_FullMethodName:       true,
	pb.Watch_Watch_FullMethodName:          true,
	pb.Lease_LeaseKeepAlive_FullMethodName: true,
	pb.Maintenance_Snapshot_FullMethodName: true,
}

// handle passes on one call.
func (c *proxyConn) handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if c.behind == nil {
		return errStoreGone
	}
	md, _ := metadata.FromIncomingContext(stream.Context())
	ctx := metadata.NewOutgoingContext(stream.Context(), md)
	if streams[method] {
		return c.answer(c.stream(ctx, method, request, stream))
	}
	answer, err := asked(ctx, c, method, request, func(ctx context.Context) ([]byte, error) {
		var answer []byte
		err := c.behind.Invoke(ctx, method, request, &answer)
		return answer, err
	})
	if err != nil {
		return c.answer(err)
	}
	return stream.SendMsg(answer)
}

var errStoreGone = status.Error(codes.FailedPrecondition, "the store is gone and the API server is stopping")

// answer is an error as the client is to see it.
func (c *proxyConn) answer(err error) error {
	if err = fault.GRPC(err); status.Code(err) == codes.Unavailable && c.proxy.failFast.Load() {
		return errStoreGone
	}
	return err
}

// asked makes a call after the rules were asked, if a point is about it.
func asked[T any](ctx context.Context, c *proxyConn, method string, request []byte,
	do func(context.Context) (T, error)) (T, error) {
	if c.proxy.Injector.Active() {
		if s, ok := identify(method, request); ok {
			return edge.Call(ctx, c.proxy.Injector,
				func() fault.Operation { return fault.Operation{Point: s.point, Key: s.key} }, do)
		}
	}
	return do(ctx)
}

// stream passes on a call whose request or answer has many parts.
func (c *proxyConn) stream(ctx context.Context, method string, request []byte, in grpc.ServerStream) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	out, err := asked(ctx, c, method, request, func(context.Context) (grpc.ClientStream, error) {
		out, err := c.behind.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		if err != nil {
			return nil, err
		}
		return out, out.SendMsg(request)
	})
	if err != nil {
		return err
	}
	c.pumps.Go(func() {
		var request []byte
		for in.RecvMsg(&request) == nil {
			if out.SendMsg(request) != nil {
				return
			}
		}
		_ = out.CloseSend()
	})
	for {
		var answer []byte
		if err := out.RecvMsg(&answer); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := in.SendMsg(answer); err != nil {
			return err
		}
	}
}
