package differential

import (
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
)

// leaseSeconds is long enough for none to expire.
const leaseSeconds = 3600

// grant grants a lease for a free slot, or one with an impossible time-to-live.
func (r *run) grant() error {
	slot := r.Choose(leaseSlots)
	ttl := int64(leaseSeconds)
	if r.one(8) {
		ttl = 9_000_000_001
	}
	if r.systems[0].leases[slot] != 0 {
		return r.revokeSlot(slot)
	}
	return r.each(fmt.Sprintf("grant %d ttl=%d", slot, ttl), func(s *System) (proto.Message, error) {
		resp, err := s.Client.Grant(r.ctx, ttl)
		if err != nil {
			return nil, err
		}
		s.grant(slot, resp.ID)
		return &pb.LeaseGrantResponse{Header: resp.ResponseHeader, ID: int64(slot), TTL: resp.TTL}, nil
	})
}

func (r *run) revoke() error { return r.revokeSlot(r.Choose(leaseSlots)) }

func (r *run) revokeSlot(slot int) error {
	return r.each(fmt.Sprint("revoke ", slot), func(s *System) (proto.Message, error) {
		resp, err := s.Client.Revoke(r.ctx, s.lease(slot))
		s.leases[slot] = 0
		return (*pb.LeaseRevokeResponse)(resp), err
	})
}

// lookAtLeases asks for a lease, all of them, or renews one.
func (r *run) lookAtLeases() error {
	slot := r.Choose(leaseSlots)
	switch r.Choose(4) {
	case 0:
		return r.each("leases", func(s *System) (proto.Message, error) {
			resp, err := s.Client.Leases(r.ctx)
			if err != nil {
				return nil, err
			}
			m := &pb.LeaseLeasesResponse{Header: resp.ResponseHeader}
			for _, l := range resp.Leases {
				m.Leases = append(m.Leases, &pb.LeaseStatus{ID: int64(l.ID)})
			}
			return m, nil
		})
	case 1:
		return r.each(fmt.Sprint("keep-alive ", slot), func(s *System) (proto.Message, error) {
			resp, err := s.Client.KeepAliveOnce(r.ctx, s.lease(slot))
			if err != nil {
				return nil, err
			}
			return &pb.LeaseKeepAliveResponse{Header: resp.ResponseHeader, ID: int64(slot), TTL: resp.TTL}, nil
		})
	default:
		var opts []clientv3.LeaseOption
		if r.one(2) {
			opts = append(opts, clientv3.WithAttachedKeys())
		}
		return r.each(fmt.Sprintf("time-to-live %d keys=%t", slot, len(opts) > 0), func(s *System) (proto.Message, error) {
			resp, err := s.Client.TimeToLive(r.ctx, s.lease(slot), opts...)
			if err != nil {
				return nil, err
			}
			return &pb.LeaseTimeToLiveResponse{
				Header: resp.ResponseHeader, ID: int64(resp.ID), TTL: resp.TTL, GrantedTTL: resp.GrantedTTL, Keys: resp.Keys,
			}, nil
		})
	}
}
