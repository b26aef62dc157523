package intercept

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"snowglobe.test/envtest/fault"
)

// refused returns a watch that the store turns down. Etcd's own client makes it
// of the answer that the store would send.
func refused(ctx context.Context, err error) clientv3.WatchChan {
	return clientv3.NewWatchFromWatchClient(refusal{err: err}, clientv3.NewCtxClient(ctx)).Watch(ctx, "refused")
}

// refusal is a store that ends every stream of watches with an error, and the
// stream too.
type refusal struct {
	pb.Watch_WatchClient
	err error
}

var _ pb.WatchClient = refusal{}

// Watch implements pb.WatchClient.
func (r refusal) Watch(context.Context, ...grpc.CallOption) (pb.Watch_WatchClient, error) {
	return r, nil
}

// Send implements pb.Watch_WatchClient.
func (refusal) Send(*pb.WatchRequest) error { return nil }

// Recv implements pb.Watch_WatchClient.
func (r refusal) Recv() (*pb.WatchResponse, error) { return nil, fault.GRPC(r.err) }

// CloseSend implements pb.Watch_WatchClient.
func (refusal) CloseSend() error { return nil }
