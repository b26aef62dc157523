package etcd

import (
	"context"
	"errors"
	"io"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// leaseService answers the Lease service.
type leaseService struct {
	s *Server
	pb.UnsafeLeaseServer
}

func (l *leaseService) LeaseGrant(_ context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	t, err := l.s.begin(leaseCost)
	if err != nil {
		return nil, err
	}
	defer t.end()
	leases := &l.s.leases
	le := &lease{id: r.ID, ttl: max(r.TTL, l.s.cfg.MinLeaseTTL)}
	switch {
	case r.TTL > maxLeaseTTL:
		return nil, rpctypes.ErrGRPCLeaseTTLTooLarge
	case r.ID == 0:
		le.id = leases.newID()
	case leases.lookup(r.ID) != nil:
		return nil, rpctypes.ErrGRPCLeaseExist
	}
	le.expiry = time.Now().Add(seconds(le.ttl))
	leases.set(le)
	leases.arm(l.s)
	return &pb.LeaseGrantResponse{Header: header(t.rev()), ID: le.id, TTL: le.ttl}, nil
}

// seconds returns n seconds. The longest lease, 285 years, just fits.
func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

func (l *leaseService) LeaseRevoke(_ context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	t, err := l.s.begin(0)
	if err != nil {
		return nil, err
	}
	defer t.end()
	le := l.s.leases.lookup(r.ID)
	if le == nil {
		return nil, rpctypes.ErrGRPCLeaseNotFound
	}
	t.revoke(le)
	l.s.leases.arm(l.s)
	return &pb.LeaseRevokeResponse{Header: header(t.rev())}, nil
}

// renewLease answers one keep-alive. A lease that is not there gets a TTL of 0.
func (s *Server) renewLease(id int64) (*pb.LeaseKeepAliveResponse, error) {
	return locked(s, func(h *pb.ResponseHeader) (*pb.LeaseKeepAliveResponse, error) {
		resp := &pb.LeaseKeepAliveResponse{Header: h, ID: id}
		if old := s.leases.lookup(id); old != nil {
			s.leases.set(&lease{id: id, ttl: old.ttl, expiry: time.Now().Add(seconds(old.ttl))})
			s.leases.arm(s)
			resp.TTL = old.ttl
		}
		return resp, nil
	})
}

func (l *leaseService) LeaseKeepAlive(stream grpc.BidiStreamingServer[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse]) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		resp, err := l.s.renewLease(req.ID)
		if err != nil {
			return err
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
}

func (l *leaseService) LeaseTimeToLive(_ context.Context, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	return locked(l.s, func(h *pb.ResponseHeader) (*pb.LeaseTimeToLiveResponse, error) {
		resp := &pb.LeaseTimeToLiveResponse{Header: h, ID: r.ID, TTL: -1}
		le := l.s.leases.lookup(r.ID)
		if le == nil {
			return resp, nil
		}
		resp.TTL, resp.GrantedTTL = int64(time.Until(le.expiry).Seconds()), le.ttl
		if r.Keys {
			for _, key := range l.s.leases.keys(r.ID) {
				resp.Keys = append(resp.Keys, []byte(key))
			}
		}
		return resp, nil
	})
}

func (l *leaseService) LeaseLeases(_ context.Context, _ *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	return locked(l.s, func(h *pb.ResponseHeader) (*pb.LeaseLeasesResponse, error) {
		resp := &pb.LeaseLeasesResponse{Header: h}
		l.s.leases.byExpiry.Ascend(func(le *lease) bool {
			resp.Leases = append(resp.Leases, &pb.LeaseStatus{ID: le.id})
			return true
		})
		return resp, nil
	})
}
