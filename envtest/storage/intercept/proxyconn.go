package intercept

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/memnet"
)

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

func newProxyConn(p *Proxy) *proxyConn {
	c := &proxyConn{proxy: p, listener: memnet.Listen(), ended: make(chan struct{})}
	c.over, c.end = context.WithCancel(context.Background())
	c.server = grpc.NewServer(grpc.ForceServerCodec(frames{}), grpc.UnknownServiceHandler(c.handle), grpc.WaitForHandlers(true),
		grpc.MaxRecvMsgSize(math.MaxInt32),
		// As etcd, whose clients ping more often than gRPC likes.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}))
	return c
}

// connect makes the connection to the member.
func (c *proxyConn) connect(ctx context.Context, network, address string) error {
	conn, err := c.proxy.Dial(ctx, network, address)
	if err != nil {
		return err
	}
	transport := insecure.NewCredentials()
	if c.proxy.TLS != nil {
		transport = credentials.NewTLS(c.proxy.TLS)
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
		return errors.Join(fmt.Errorf("connect to the store at %s: %w", address, err), conn.Close())
	}
	behind.Connect()
	for state := behind.GetState(); state != connectivity.Ready; state = behind.GetState() {
		if state == connectivity.TransientFailure || !behind.WaitForStateChange(ctx, state) {
			_, _ = behind.Close(), conn.Close()
			return fmt.Errorf("connect to the store at %s: it does not answer as an etcd", address)
		}
	}
	c.behind = behind
	return nil
}

// serve passes calls on until the connection ends, and releases it.
func (c *proxyConn) serve() {
	var watching sync.WaitGroup
	watching.Go(func() {
		c.awaitEnd()
		c.server.Stop()
	})
	_ = c.server.Serve(c.listener) // until it is stopped
	c.end()
	watching.Wait()
	c.release()
}

// awaitEnd returns when one of the two connections has ended.
func (c *proxyConn) awaitEnd() {
	if c.behind == nil {
		<-c.over.Done()
		return
	}
	for c.behind.GetState() == connectivity.Ready && c.behind.WaitForStateChange(c.over, connectivity.Ready) {
	}
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

// clientConn is what the client has of a connection.
type clientConn struct {
	net.Conn
	end context.CancelFunc
}

// Close implements net.Conn.
func (c *clientConn) Close() error {
	defer c.end()
	return c.Conn.Close()
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
	if err = fault.GRPC(err); status.Code(err) == codes.Unavailable && c.proxy.failsFast() {
		return errStoreGone
	}
	return err
}

// asked makes a call after the rules were asked, if a point is about it.
func asked[T any](ctx context.Context, c *proxyConn, method string, request []byte, do func(context.Context) (T, error)) (T, error) {
	if !c.proxy.Injector.Active() {
		return do(ctx)
	}
	s, ok := identify(method, request)
	if !ok {
		return do(ctx)
	}
	return fault.Call(ctx, c.proxy.Injector, func() fault.Operation { return fault.Operation{Point: s.point, Key: s.key} }, do)
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
