package keyspace

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/protobuf/proto"
)

// What a write costs besides its keys and values, as etcd estimates it.
const (
	keyCost   = 256
	leaseCost = 64
)

// spend raises an alarm if there is no room for a write of a cost. The store is locked.
func (s *Store) spend(cost int) error {
	quota := s.cfg.QuotaBytes
	if cost == 0 || quota < 0 || s.keys.bytes+int64(cost) < quota {
		return nil
	}
	s.raise(&pb.AlarmMember{MemberID: MemberID, Alarm: pb.AlarmType_NOSPACE})
	return rpctypes.ErrGRPCNoSpace
}

// raise adds an alarm, if it is not raised already. The store is locked.
func (s *Store) raise(alarm *pb.AlarmMember) {
	if !slices.ContainsFunc(s.alarms, func(a *pb.AlarmMember) bool { return proto.Equal(a, alarm) }) {
		s.alarms = append(s.alarms, alarm)
	}
}

// alarmed says why an alarm forbids a write; spends says that the write takes
// space. The store is locked.
func (s *Store) alarmed(spends bool) error {
	switch {
	case slices.ContainsFunc(s.alarms, func(a *pb.AlarmMember) bool { return a.Alarm == pb.AlarmType_CORRUPT }):
		return rpctypes.ErrGRPCCorrupt
	case spends && len(s.alarms) > 0:
		return rpctypes.ErrGRPCNoSpace
	}
	return nil
}

// Alarm raises, drops and lists alarms, which forbid writes. Only a quota that is exceeded raises one by itself.
func (s *Store) Alarm(_ context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	return locked(s, func(h *pb.ResponseHeader) (*pb.AlarmResponse, error) {
		resp := &pb.AlarmResponse{Header: h}
		alarm := &pb.AlarmMember{MemberID: r.MemberID, Alarm: r.Alarm}
		switch r.Action {
		case pb.AlarmRequest_GET:
			for _, a := range s.alarms {
				if r.Alarm == pb.AlarmType_NONE || r.Alarm == a.Alarm {
					resp.Alarms = append(resp.Alarms, a)
				}
			}
		case pb.AlarmRequest_ACTIVATE:
			if r.Alarm == pb.AlarmType_NONE {
				break
			}
			s.raise(alarm)
			resp.Alarms = []*pb.AlarmMember{alarm}
		case pb.AlarmRequest_DEACTIVATE:
			if i := slices.IndexFunc(s.alarms, func(a *pb.AlarmMember) bool { return proto.Equal(a, alarm) }); i >= 0 {
				resp.Alarms = []*pb.AlarmMember{s.alarms[i]}
				s.alarms = slices.Delete(s.alarms, i, i+1)
				s.leases.arm(s) // those that could not expire meanwhile
			}
		}
		return resp, nil
	})
}
