package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// clusterService answers the Cluster service of a cluster that never has more than
// one member. As in etcd, its headers have no revision.
type clusterService struct {
	s *Server
	pb.UnsafeClusterServer
}

func (c *clusterService) members() []*pb.Member {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	return []*pb.Member{{
		ID:         memberID,
		Name:       "default",
		PeerURLs:   c.s.peerURLs,
		ClientURLs: []string{c.s.cfg.Endpoint},
	}}
}

func (c *clusterService) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Header: header(0), Members: c.members()}, nil
}

func (c *clusterService) MemberAdd(context.Context, *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	return nil, rpctypes.ErrGRPCUnhealthy
}

func (c *clusterService) MemberRemove(_ context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	if r.ID != memberID {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	// The client's error, and so without a gRPC code: a mistake of etcd's.
	return nil, rpctypes.ErrMemberNotEnoughStarted
}

func (c *clusterService) MemberUpdate(_ context.Context, r *pb.MemberUpdateRequest) (*pb.MemberUpdateResponse, error) {
	if r.ID != memberID {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	// etcd leaves it to clients to check whether these are URLs.
	c.s.mu.Lock()
	c.s.peerURLs = r.PeerURLs
	c.s.mu.Unlock()
	return &pb.MemberUpdateResponse{Header: header(0), Members: c.members()}, nil
}

func (c *clusterService) MemberPromote(_ context.Context, r *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	if r.ID != memberID {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	return nil, rpctypes.ErrGRPCMemberNotLearner
}
