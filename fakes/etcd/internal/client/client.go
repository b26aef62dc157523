package client

import (
	"context"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// client is the store's side of a client, which Close has to end.
type client struct {
	store *keyspace.Store
	v3    *clientv3.Client

	mu     sync.Mutex // guards what follows
	unhook func()     // from the closing of the store
	// streams holds its watches, by what would be their gRPC stream. It is nil once
	// the client is closed.
	streams map[string]*keyspace.Stream
}

// New returns a client of a store that is closed with it. What is rarely called goes
// over services, a connection that reaches the store's services in the same process. A
// watch may have a number of responses unread.
func New(store *keyspace.Store, services grpc.ClientConnInterface, endpoint string, unread int) *kubernetes.Client {
	v3 := clientv3.NewCtxClient(context.Background())
	setEndpoints(v3, endpoint)
	c := &client{store: store, v3: v3, streams: make(map[string]*keyspace.Stream)}
	conn := &conn{services, c}
	v3.KV = newKVClient(c, pb.NewKVClient(conn))
	v3.Watcher = &watchClient{c, unread}
	v3.Lease = newLeaseClient(c, pb.NewLeaseClient(conn))
	v3.Cluster = clientv3.NewClusterFromClusterClient(pb.NewClusterClient(conn), v3)
	v3.Maintenance = clientv3.NewMaintenanceFromMaintenanceClient(pb.NewMaintenanceClient(conn), v3)
	v3.Auth = clientv3.NewAuthFromAuthClient(pb.NewAuthClient(conn), v3)
	c.mu.Lock()
	unhook, open := store.Hook(store.Closing(), func() { _ = v3.Close() })
	c.unhook = unhook
	c.mu.Unlock()
	if !open {
		_ = v3.Close()
	}
	return &kubernetes.Client{Client: v3, Kubernetes: store.Kubernetes(c.usable)}
}

// usable says why a request with ctx cannot be made through c.
func (c *client) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	if c.v3.Ctx().Err() != nil {
		return status.Error(codes.Canceled, "grpc: the client connection is closing")
	}
	return nil
}

// conn is a connection that ends with the client.
type conn struct {
	grpc.ClientConnInterface
	c *client
}

func (n *conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if err := n.c.usable(ctx); err != nil {
		return err
	}
	return n.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}
