package etcd

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

// keepAliveMinTime is how often clients with an open stream may ping. Clients
// without one may not, as in etcd. The server's own pings, one after two hours
// of silence with 20 seconds for the answer, are gRPC's default and etcd's.
const keepAliveMinTime = 5 * time.Second

// Serve serves etcd's client API on l: over gRPC the KV, Watch, Lease, Cluster, Election,
// Lock and health services, and of Maintenance and Auth what a store in memory has, and over
// HTTP/1 /health, /livez, /readyz, /version, /metrics and /debug/vars. It returns nil when the
// server is closed, or the error that made l unusable; l and its connections
// are closed either way. It may be called for any number of listeners.
func (s *Server) Serve(l net.Listener) error {
	// Elections and locks are clients of the store themselves, as in etcd.
	local := s.Client()
	defer func() { _ = local.Close() }()
	g := s.newGRPCServer()
	v3electionpb.RegisterElectionServer(g, v3election.NewElectionServer(local.Client))
	v3lockpb.RegisterLockServer(g, v3lock.NewLockServer(local.Client))

	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.grpcServers = append(s.grpcServers, g)
	}
	s.mu.Unlock()
	if closed {
		_ = l.Close()
		return errors.New("serve etcd: the server is closed; make a new one")
	}
	err := g.Serve(newClientListener(l))

	s.mu.Lock()
	s.grpcServers = slices.DeleteFunc(s.grpcServers, func(o *grpc.Server) bool { return o == g })
	s.mu.Unlock()
	g.Stop()
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve etcd on %s: %w", l.Addr(), err)
	}
	return nil
}

// newGRPCServer returns a gRPC server with the services that are the store's
// own. Its connections may speak HTTP/1 as well.
func (s *Server) newGRPCServer() *grpc.Server {
	options := []grpc.ServerOption{
		grpc.Creds(newProtocolSwitch(s)),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepAliveMinTime}),
		grpc.MaxRecvMsgSize(s.cfg.MaxRequestBytes + grpcOverheadBytes),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.MaxConcurrentStreams(math.MaxUint32),
		grpc.WaitForHandlers(true),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.UnknownServiceHandler(refuse),
	}
	g := grpc.NewServer(append(options, s.cfg.ServerOptions...)...)
	for _, service := range s.services() {
		g.RegisterService(service.desc, service.impl)
	}
	healthpb.RegisterHealthServer(g, health.NewServer())
	return g
}
