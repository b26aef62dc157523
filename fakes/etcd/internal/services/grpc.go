package services

import (
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"snowglobe.test/internal/conns"
)

// keepAliveMinTime is how often clients with an open stream may ping. Clients
// without one may not, as in etcd. The server's own pings, one after two hours
// of silence with 20 seconds for the answer, are gRPC's default and etcd's.
const keepAliveMinTime = 5 * time.Second

// grpcOverheadBytes is how much more than MaxRequestBytes gRPC reads, as in etcd.
const grpcOverheadBytes = 512 * 1024

// Serve serves on l until the store is closed, or returns the error that made l unusable;
// l and its connections are closed either way. Elections and locks are clients of the
// store themselves, as in etcd, over local.
func (s *Server) Serve(l net.Listener, local *clientv3.Client) error {
	g := s.newGRPCServer()
	v3electionpb.RegisterElectionServer(g, v3election.NewElectionServer(local))
	v3lockpb.RegisterLockServer(g, v3lock.NewLockServer(local))
	var connected conns.Set
	stop := func() {
		_ = l.Close()
		connected.CloseAll() // gRPC would wait two minutes for one that has not sent anything yet
		g.Stop()
	}
	unhook, open := s.store.Hook(s.store.Closing(), stop)
	if !open {
		_ = l.Close()
		return errors.New("serve etcd: the server is closed; make a new one")
	}
	err := g.Serve(connected.Keep(l))
	unhook()
	stop()
	if err != nil && s.store.Closing().Err() == nil {
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
	for _, service := range s.services {
		g.RegisterService(service.desc, service.impl)
	}
	healthpb.RegisterHealthServer(g, health.NewServer())
	return g
}
