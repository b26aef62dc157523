package etcd

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcdversion "go.etcd.io/etcd/api/v3/version"
	"google.golang.org/protobuf/proto"
)

// maintenanceService answers what the Maintenance service has for a store in memory.
type maintenanceService struct {
	s *Server
	pb.UnimplementedMaintenanceServer
}

func (m *maintenanceService) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	s := m.s
	return locked(s, func(h *pb.ResponseHeader) (*pb.StatusResponse, error) {
		resp := &pb.StatusResponse{
			Header:           h,
			Version:          etcdversion.Version,
			StorageVersion:   storageVersion,
			Leader:           memberID,
			RaftIndex:        s.raftIndex.Load(),
			RaftAppliedIndex: s.raftIndex.Load(),
			RaftTerm:         raftTerm,
			DbSize:           s.keys.bytes,
			DbSizeInUse:      s.keys.bytes,
			DbSizeQuota:      s.cfg.QuotaBytes,
			DowngradeInfo:    &pb.DowngradeInfo{},
		}
		for _, a := range s.alarms {
			resp.Errors = append(resp.Errors, a.String())
		}
		return resp, nil
	})
}

// storageVersion is the schema version of this etcd's backend.
const storageVersion = "3.7.0"

// Alarm raises, drops and lists alarms, which forbid writes. Only a quota that is exceeded raises one by itself.
func (m *maintenanceService) Alarm(_ context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	s := m.s
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

// Defragment has nothing to do.
func (m *maintenanceService) Defragment(context.Context, *pb.DefragmentRequest) (*pb.DefragmentResponse, error) {
	return &pb.DefragmentResponse{}, nil
}
