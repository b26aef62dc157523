package etcd

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// Serve answers gRPC on l with the KV, Watch, Lease, Cluster, Maintenance,
// Auth and health services. It returns nil when the server is closed, or the
// error that made l unusable; l is closed either way. It may be called for
// any number of listeners.
func (s *Server) Serve(l net.Listener) error {
	door := grpc.NewServer(
		grpc.MaxRecvMsgSize(s.cfg.MaxRequestBytes+grpcOverheadBytes),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.MaxConcurrentStreams(math.MaxUint32),
		grpc.WaitForHandlers(true),
		grpc.ForceServerCodecV2(newCodec()),
	)
	for _, service := range s.services() {
		door.RegisterService(service.desc, service.impl)
	}
	healthpb.RegisterHealthServer(door, health.NewServer())

	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.doors = append(s.doors, door)
	}
	s.mu.Unlock()
	if closed {
		_ = l.Close()
		return errors.New("serve etcd: the server is closed; make a new one")
	}
	err := door.Serve(l)

	s.mu.Lock()
	s.doors = slices.DeleteFunc(s.doors, func(d *grpc.Server) bool { return d == door })
	s.mu.Unlock()
	door.Stop()
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve etcd on %s: %w", l.Addr(), err)
	}
	return nil
}
