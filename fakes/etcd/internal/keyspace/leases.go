package keyspace

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func (s *Store) LeaseGrant(_ context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	t, err := s.begin(leaseCost)
	if err != nil {
		return nil, err
	}
	defer t.end()
	leases := &s.leases
	le := &lease{id: r.ID, ttl: max(r.TTL, s.cfg.MinLeaseTTL)}
	switch {
	case r.TTL > MaxLeaseTTL:
		return nil, rpctypes.ErrGRPCLeaseTTLTooLarge
	case r.ID == 0:
		le.id = leases.newID()
	case leases.lookup(r.ID) != nil:
		return nil, rpctypes.ErrGRPCLeaseExist
	}
	le.expiry = time.Now().Add(Seconds(le.ttl))
	leases.set(le)
	leases.arm(s)
	return &pb.LeaseGrantResponse{Header: Header(t.rev()), ID: le.id, TTL: le.ttl}, nil
}

// Seconds returns n seconds. The longest lease, 285 years, just fits.
func Seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

func (s *Store) LeaseRevoke(_ context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	t, err := s.begin(0)
	if err != nil {
		return nil, err
	}
	defer t.end()
	le := s.leases.lookup(r.ID)
	if le == nil {
		return nil, rpctypes.ErrGRPCLeaseNotFound
	}
	t.revoke(le)
	s.leases.arm(s)
	return &pb.LeaseRevokeResponse{Header: Header(t.rev())}, nil
}

// RenewLease answers one keep-alive. A lease that is not there gets a TTL of 0.
func (s *Store) RenewLease(id int64) (*pb.LeaseKeepAliveResponse, error) {
	return locked(s, func(h *pb.ResponseHeader) (*pb.LeaseKeepAliveResponse, error) {
		resp := &pb.LeaseKeepAliveResponse{Header: h, ID: id}
		if old := s.leases.lookup(id); old != nil {
			s.leases.set(&lease{id: id, ttl: old.ttl, expiry: time.Now().Add(Seconds(old.ttl))})
			s.leases.arm(s)
			resp.TTL = old.ttl
		}
		return resp, nil
	})
}

func (s *Store) LeaseTimeToLive(_ context.Context, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	return locked(s, func(h *pb.ResponseHeader) (*pb.LeaseTimeToLiveResponse, error) {
		resp := &pb.LeaseTimeToLiveResponse{Header: h, ID: r.ID, TTL: -1}
		le := s.leases.lookup(r.ID)
		if le == nil {
			return resp, nil
		}
		resp.TTL, resp.GrantedTTL = int64(time.Until(le.expiry).Seconds()), le.ttl
		if r.Keys {
			for _, key := range s.leases.keys(r.ID) {
				resp.Keys = append(resp.Keys, []byte(key))
			}
		}
		return resp, nil
	})
}

func (s *Store) LeaseLeases(_ context.Context, _ *pb.LeaseLeasesRequest) (*pb.LeaseLeasesResponse, error) {
	return locked(s, func(h *pb.ResponseHeader) (*pb.LeaseLeasesResponse, error) {
		resp := &pb.LeaseLeasesResponse{Header: h}
		s.leases.byExpiry.Ascend(func(le *lease) bool {
			resp.Leases = append(resp.Leases, &pb.LeaseStatus{ID: le.id})
			return true
		})
		return resp, nil
	})
}
