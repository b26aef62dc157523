package etcd

import (
	"context"
	"crypto/sha256"
	"slices"

	"github.com/coreos/go-semver/semver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	etcdversion "go.etcd.io/etcd/api/v3/version"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maintenanceService answers the Maintenance service.
type maintenanceService struct {
	s *Server
	pb.UnsafeMaintenanceServer
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
		is := func(a *pb.AlarmMember) bool { return a.MemberID == r.MemberID && a.Alarm == r.Alarm }
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
			alarm := &pb.AlarmMember{MemberID: r.MemberID, Alarm: r.Alarm}
			s.raise(alarm)
			resp.Alarms = []*pb.AlarmMember{alarm}
		case pb.AlarmRequest_DEACTIVATE:
			if i := slices.IndexFunc(s.alarms, is); i >= 0 {
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

// Hash hashes the keys; etcd hashes its whole backend, but there is no more here.
func (m *maintenanceService) Hash(context.Context, *pb.HashRequest) (*pb.HashResponse, error) {
	k, _ := m.s.freezeWithHashes()
	return &pb.HashResponse{Header: header(k.rev), Hash: k.hash(k.rev, false)}, nil
}

// MoveLeader fails: there is no other member.
func (m *maintenanceService) MoveLeader(_ context.Context, r *pb.MoveLeaderRequest) (*pb.MoveLeaderResponse, error) {
	if r.TargetID == memberID {
		return &pb.MoveLeaderResponse{}, nil
	}
	return nil, rpctypes.ErrGRPCBadLeaderTransferee
}

// Downgrade says whether etcd could be downgraded; it never is.
func (m *maintenanceService) Downgrade(_ context.Context, r *pb.DowngradeRequest) (*pb.DowngradeResponse, error) {
	resp := &pb.DowngradeResponse{Header: header(m.s.Revision()), Version: etcdversion.Cluster(etcdversion.Version)}
	if r.Action == pb.DowngradeRequest_CANCEL {
		return resp, nil // no downgrade is under way, and etcd does not say so
	}
	target, err := semver.NewVersion(r.Version)
	if err != nil {
		target, err = semver.NewVersion(r.Version + ".0")
	}
	if err != nil {
		return nil, rpctypes.ErrGRPCWrongDowngradeVersionFormat
	}
	if have := semver.New(etcdversion.Version); target.Major != have.Major || target.Minor != have.Minor-1 {
		return nil, rpctypes.ErrGRPCInvalidDowngradeTargetVersion
	}
	if r.Action == pb.DowngradeRequest_ENABLE {
		return nil, status.Error(codes.Unimplemented, "the in-memory etcd stays at its version; downgrade a real etcd")
	}
	return resp, nil
}

// snapshotChunkBytes is the size of the pieces a snapshot is sent in.
const snapshotChunkBytes = 32 * 1024

// Snapshot sends a database file that etcd's own tools can restore, and its digest.
func (m *maintenanceService) Snapshot(_ *pb.SnapshotRequest, stream grpc.ServerStreamingServer[pb.SnapshotResponse]) error {
	ctx := stream.Context()
	db, err := backendFile(ctx, m.s.Snapshot(), m.s.raftIndex.Load())
	switch {
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case err != nil:
		return status.Error(codes.Unknown, err.Error())
	}
	digest := sha256.Sum256(db)
	send := func(left int, blob []byte) error {
		return stream.Send(&pb.SnapshotResponse{RemainingBytes: uint64(left), Blob: blob, Version: storageVersion})
	}
	for len(db) > 0 {
		n := min(len(db), snapshotChunkBytes)
		if err := send(len(db)-n, db[:n]); err != nil {
			return err
		}
		db = db[n:]
	}
	return send(0, digest[:])
}
