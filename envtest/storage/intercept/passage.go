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

// passage is one connection through a Door: a server for one client, and a
// connection to the member. When one of the two ends, the other does.
type passage struct {
	door     *Door
	listener *memnet.Listener
	server   *grpc.Server
	behind   *grpc.ClientConn // to the member; nil if there is none to be reached
	over     context.Context
	end      context.CancelFunc
	pumps    sync.WaitGroup
}

func newPassage(d *Door) *passage {
	p := &passage{door: d, listener: memnet.Listen()}
	p.over, p.end = context.WithCancel(context.Background())
	p.server = grpc.NewServer(grpc.ForceServerCodec(frames{}), grpc.UnknownServiceHandler(p.handle), grpc.WaitForHandlers(true),
		grpc.MaxRecvMsgSize(math.MaxInt32),
		// As etcd, whose clients ping more often than gRPC likes.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}))
	return p
}

// connect makes the connection to the member.
func (p *passage) connect(ctx context.Context, network, address string) error {
	conn, err := p.door.Dial(ctx, network, address)
	if err != nil {
		return err
	}
	transport := insecure.NewCredentials()
	if p.door.TLS != nil {
		transport = credentials.NewTLS(p.door.TLS)
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
	p.behind = behind
	return nil
}

// serve passes calls on until the passage ends, and releases it.
func (p *passage) serve() {
	var watching sync.WaitGroup
	watching.Go(func() {
		p.awaitEnd()
		p.server.Stop()
	})
	_ = p.server.Serve(p.listener) // until it is stopped
	p.end()
	watching.Wait()
	p.release()
}

// awaitEnd returns when one of the two connections has ended.
func (p *passage) awaitEnd() {
	if p.behind == nil {
		<-p.over.Done()
		return
	}
	for p.behind.GetState() == connectivity.Ready && p.behind.WaitForStateChange(p.over, connectivity.Ready) {
	}
}

// release gives back what the passage has, whether it has served or not.
func (p *passage) release() {
	p.end()
	p.server.Stop()
	p.pumps.Wait()
	if p.behind != nil {
		_ = p.behind.Close()
	}
}

// passageConn is what the client has of a passage.
type passageConn struct {
	net.Conn
	end context.CancelFunc
}

// Close implements net.Conn.
func (c *passageConn) Close() error {
	defer c.end()
	return c.Conn.Close()
}

// handle passes on one call.
func (p *passage) handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if p.behind == nil {
		return errStoreGone
	}
	md, _ := metadata.FromIncomingContext(stream.Context())
	ctx := metadata.NewOutgoingContext(stream.Context(), md)
	if streams[method] {
		return p.answer(p.stream(ctx, method, request, stream))
	}
	answer, err := asked(ctx, p, method, request, func(ctx context.Context) ([]byte, error) {
		var answer []byte
		err := p.behind.Invoke(ctx, method, request, &answer)
		return answer, err
	})
	if err != nil {
		return p.answer(err)
	}
	return stream.SendMsg(answer)
}

var errStoreGone = status.Error(codes.FailedPrecondition, "the store is gone and the API server is stopping")

// answer is an error as the client is to see it.
func (p *passage) answer(err error) error {
	if err = fault.GRPC(err); status.Code(err) == codes.Unavailable && p.door.isClosing() {
		return errStoreGone
	}
	return err
}

// asked makes a call after the edge was asked, if the method is one that a point
// is about. What cannot be read the member may refuse.
func asked[T any](ctx context.Context, p *passage, method string, request []byte, do func(context.Context) (T, error)) (T, error) {
	if !p.door.View.Edge.Active() {
		return do(ctx)
	}
	point, key, ok := identify(method, request)
	if !ok {
		return do(ctx)
	}
	return call(ctx, &p.door.View, point, key, do)
}

// stream passes on a call whose request or answer has many parts.
func (p *passage) stream(ctx context.Context, method string, request []byte, in grpc.ServerStream) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	out, err := asked(ctx, p, method, request, func(context.Context) (grpc.ClientStream, error) {
		out, err := p.behind.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		if err != nil {
			return nil, err
		}
		return out, out.SendMsg(request)
	})
	if err != nil {
		return err
	}
	p.pumps.Go(func() {
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
