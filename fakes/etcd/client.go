package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// client is the server's side of an in-process client, which Close has to end.
type client struct {
	s  *Server
	v3 *clientv3.Client

	// streams holds its watches, by what would be their gRPC stream. It is nil
	// once the client is closed, and guarded by the server's lock.
	streams map[string]*watchSet
}

// Client returns a new client in this process. Nothing is serialized, so keys
// and values passed to it or returned by it must not be changed afterwards.
// Closing it ends only what was started through it, and returns
// context.Canceled, as for every clientv3.Client without a connection;
// closing the server closes it too. Unlike upstream's, its Kubernetes
// interface does not use its KV: to intercept calls, wrap both.
func (s *Server) Client() *kubernetes.Client {
	c := &client{s: s, streams: make(map[string]*watchSet)}
	v3 := clientv3.NewCtxClient(context.Background())
	c.v3 = v3
	setEndpoints(v3, s.cfg.Endpoint)
	v3.KV = newKVClient(c)
	v3.Watcher = &watchClient{c}
	conn := &localConn{c}
	v3.Lease = newLeaseClient(c, pb.NewLeaseClient(conn))
	v3.Cluster = clientv3.NewClusterFromClusterClient(pb.NewClusterClient(conn), v3)
	v3.Maintenance = clientv3.NewMaintenanceFromMaintenanceClient(pb.NewMaintenanceClient(conn), v3)
	v3.Auth = clientv3.NewAuthFromAuthClient(pb.NewAuthClient(conn), v3)

	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.clients = append(s.clients, c)
	}
	s.mu.Unlock()
	if closed {
		_ = v3.Close()
	}
	return &kubernetes.Client{Client: v3, Kubernetes: &kubernetesClient{c}}
}
