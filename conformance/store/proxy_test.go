package store_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// proxy serves a store's API, and changes what a defect changes. A nil function changes
// nothing.
type proxy struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer
	pb.UnimplementedLeaseServer
	pb.UnimplementedMaintenanceServer

	kv          pb.KVClient
	watch       pb.WatchClient
	lease       pb.LeaseClient
	maintenance pb.MaintenanceClient
	defect
}

// defect is what a store does wrong.
type defect struct {
	get     func(p *proxy, ctx context.Context, in *pb.RangeRequest) (*pb.RangeResponse, error)
	txn     func(p *proxy, ctx context.Context, in *pb.TxnRequest) (*pb.TxnResponse, error)
	compact func(p *proxy, ctx context.Context, in *pb.CompactionRequest) (*pb.CompactionResponse, error)
	grant   func(p *proxy, ctx context.Context, in *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error)
	status  func(out *pb.StatusResponse)
	stream  func(out *pb.RangeStreamResponse)
	// create changes a request for a watch.
	create func(in *pb.WatchCreateRequest)
	// events returns a function for each stream of watches, which turns a response into
	// those that the client receives.
	events func(p *proxy) func(out *pb.WatchResponse) []*pb.WatchResponse
}

// plant serves the store at an endpoint with a defect, and returns the URL.
func plant(t *testing.T, endpoint string, d defect) string {
	t.Helper()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	require.NoError(t, err)
	p := &proxy{
		kv: pb.NewKVClient(conn), watch: pb.NewWatchClient(conn), lease: pb.NewLeaseClient(conn), maintenance: pb.NewMaintenanceClient(conn),
		defect: d,
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(1<<30), grpc.MaxSendMsgSize(1<<30), grpc.WaitForHandlers(true))
	pb.RegisterKVServer(server, p)
	pb.RegisterWatchServer(server, p)
	pb.RegisterLeaseServer(server, p)
	pb.RegisterMaintenanceServer(server, p)
	listener, url := listen(t)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
		_ = conn.Close()
	})
	return url
}

// Range implements pb.KVServer.
func (p *proxy) Range(ctx context.Context, in *pb.RangeRequest) (*pb.RangeResponse, error) {
	if p.get != nil {
		return p.get(p, ctx, in)
	}
	return p.kv.Range(ctx, in)
}

// RangeStream implements pb.KVServer.
func (p *proxy) RangeStream(in *pb.RangeRequest, client grpc.ServerStreamingServer[pb.RangeStreamResponse]) error {
	truth, err := p.kv.RangeStream(client.Context(), in)
	if err != nil {
		return err
	}
	return pass(truth.Recv, func(out *pb.RangeStreamResponse) error {
		if p.stream != nil {
			p.stream(out)
		}
		return client.Send(out)
	})
}

// Put implements pb.KVServer.
func (p *proxy) Put(ctx context.Context, in *pb.PutRequest) (*pb.PutResponse, error) {
	return p.kv.Put(ctx, in)
}

// DeleteRange implements pb.KVServer.
func (p *proxy) DeleteRange(ctx context.Context, in *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	return p.kv.DeleteRange(ctx, in)
}

// Txn implements pb.KVServer.
func (p *proxy) Txn(ctx context.Context, in *pb.TxnRequest) (*pb.TxnResponse, error) {
	if p.txn != nil {
		return p.txn(p, ctx, in)
	}
	return p.kv.Txn(ctx, in)
}

// Compact implements pb.KVServer.
func (p *proxy) Compact(ctx context.Context, in *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	if p.compact != nil {
		return p.compact(p, ctx, in)
	}
	return p.kv.Compact(ctx, in)
}

// LeaseGrant implements pb.LeaseServer.
func (p *proxy) LeaseGrant(ctx context.Context, in *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	if p.grant != nil {
		return p.grant(p, ctx, in)
	}
	return p.lease.LeaseGrant(ctx, in)
}

// LeaseRevoke implements pb.LeaseServer.
func (p *proxy) LeaseRevoke(ctx context.Context, in *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	return p.lease.LeaseRevoke(ctx, in)
}

// LeaseTimeToLive implements pb.LeaseServer.
func (p *proxy) LeaseTimeToLive(ctx context.Context, in *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	return p.lease.LeaseTimeToLive(ctx, in)
}

// LeaseKeepAlive implements pb.LeaseServer.
func (p *proxy) LeaseKeepAlive(client grpc.BidiStreamingServer[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse]) error {
	truth, err := p.lease.LeaseKeepAlive(client.Context())
	if err != nil {
		return err
	}
	go func() { _ = pass(client.Recv, truth.Send) }()
	return pass(truth.Recv, client.Send)
}

// Status implements pb.MaintenanceServer.
func (p *proxy) Status(ctx context.Context, in *pb.StatusRequest) (*pb.StatusResponse, error) {
	out, err := p.maintenance.Status(ctx, in)
	if err == nil && p.status != nil {
		p.status(out)
	}
	return out, err
}

// Watch implements pb.WatchServer.
func (p *proxy) Watch(client grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchResponse]) error {
	truth, err := p.watch.Watch(client.Context())
	if err != nil {
		return err
	}
	go func() { // ends with the stream
		_ = pass(client.Recv, func(in *pb.WatchRequest) error {
			if create := in.GetCreateRequest(); create != nil && p.create != nil {
				p.create(create)
			}
			return truth.Send(in)
		})
		_ = truth.CloseSend()
	}()
	tell := func(out *pb.WatchResponse) []*pb.WatchResponse { return []*pb.WatchResponse{out} }
	if p.events != nil {
		tell = p.events(p)
	}
	return pass(truth.Recv, func(out *pb.WatchResponse) error {
		for _, told := range tell(out) {
			if err := client.Send(told); err != nil {
				return err
			}
		}
		return nil
	})
}

// pass hands on messages until there are no more.
func pass[M any](receive func() (M, error), send func(M) error) error {
	for {
		message, err := receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := send(message); err != nil {
			return err
		}
	}
}
