package services

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcdversion "go.etcd.io/etcd/api/v3/version"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// StorageVersion is the schema version of this etcd's backend.
const StorageVersion = "3.7.0"

// maintenanceService answers what the Maintenance service has for a store in memory.
type maintenanceService struct {
	store *keyspace.Store
	pb.UnimplementedMaintenanceServer
}

func (m *maintenanceService) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	stats, err := m.store.Stats()
	resp := &pb.StatusResponse{
		Header:           stats.Header,
		Version:          etcdversion.Version,
		StorageVersion:   StorageVersion,
		Leader:           keyspace.MemberID,
		RaftIndex:        stats.RaftIndex,
		RaftAppliedIndex: stats.RaftIndex,
		RaftTerm:         keyspace.RaftTerm,
		DbSize:           stats.Bytes,
		DbSizeInUse:      stats.Bytes,
		DbSizeQuota:      stats.QuotaBytes,
		DowngradeInfo:    &pb.DowngradeInfo{},
	}
	for _, a := range stats.Alarms {
		resp.Errors = append(resp.Errors, a.String())
	}
	return resp, err
}

func (m *maintenanceService) Alarm(ctx context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	return m.store.Alarm(ctx, r)
}

// Defragment has nothing to do.
func (m *maintenanceService) Defragment(context.Context, *pb.DefragmentRequest) (*pb.DefragmentResponse, error) {
	return &pb.DefragmentResponse{}, nil
}
