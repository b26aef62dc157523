package etcd

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"google.golang.org/protobuf/proto"
)

// maxLearners is etcd's default.
const maxLearners = 1

// clusterService answers the Cluster service of a cluster in which only one member ever
// starts. The others are listed, and as in a real cluster no operation takes away the
// quorum of those that have started; but the one member never loses it. As in etcd, the
// headers have no revision.
type clusterService struct {
	s *Server
	pb.UnsafeClusterServer
}

// members lists the members by id, as etcd does.
func (c *clusterService) members() []*pb.Member {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	all := []*pb.Member{{ID: memberID, Name: c.s.cfg.Name, PeerURLs: c.s.peerURLs, ClientURLs: c.s.cfg.ClientURLs}}
	for _, m := range c.s.added {
		all = append(all, proto.CloneOf(m))
	}
	slices.SortFunc(all, func(a, b *pb.Member) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func (c *clusterService) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	return &pb.MemberListResponse{Header: header(0), Members: c.members()}, nil
}

func (c *clusterService) MemberAdd(_ context.Context, r *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	urls, err := types.NewURLs(r.PeerURLs)
	if err != nil {
		return nil, rpctypes.ErrGRPCMemberBadURLs
	}
	m := &pb.Member{ID: newMemberID(urls, time.Now()), PeerURLs: urls.StringSlice(), IsLearner: r.IsLearner}
	if err := c.s.addMember(m); err != nil {
		return nil, err
	}
	return &pb.MemberAddResponse{Header: header(0), Member: proto.CloneOf(m), Members: c.members()}, nil
}

// newMemberID is the id that etcd gives a member that is added to a cluster without a token.
func newMemberID(urls types.URLs, now time.Time) uint64 {
	sum := sha1.Sum([]byte(strings.Join(urls.StringSlice(), "") + strconv.FormatInt(now.Unix(), 10)))
	return binary.BigEndian.Uint64(sum[:8])
}

// addMember adds a member that will never start.
func (s *Server) addMember(m *pb.Member) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	learners := 0
	for _, other := range s.added {
		if other.IsLearner {
			learners++
		}
	}
	switch voters := len(s.added) - learners; {
	case voters > 0 && !m.IsLearner:
		return rpctypes.ErrMemberNotEnoughStarted // see MemberRemove
	case voters > 0:
		return rpctypes.ErrGRPCUnhealthy
	case s.findMember(m.ID) != nil:
		return rpctypes.ErrGRPCMemberExist
	case s.hasPeerURL(m.PeerURLs, m.ID):
		return rpctypes.ErrGRPCPeerURLExist
	case m.IsLearner && learners == maxLearners:
		return rpctypes.ErrGRPCTooManyLearners
	}
	s.added = append(s.added, m)
	return nil
}

// findMember returns a member that was added, nil if there is none of this id.
func (s *Server) findMember(id uint64) *pb.Member {
	for _, m := range s.added {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// hasPeerURL reports whether a member with another id has one of the URLs.
func (s *Server) hasPeerURL(urls []string, id uint64) bool {
	taken := func(of []string) bool {
		return slices.ContainsFunc(urls, func(url string) bool { return slices.Contains(of, url) })
	}
	if id != memberID && taken(s.peerURLs) {
		return true
	}
	return slices.ContainsFunc(s.added, func(m *pb.Member) bool { return m.ID != id && taken(m.PeerURLs) })
}

func (c *clusterService) MemberRemove(_ context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	if r.ID == memberID {
		// The client's error, and so without a gRPC code: a mistake of etcd's.
		return nil, rpctypes.ErrMemberNotEnoughStarted
	}
	if !c.s.removeMember(r.ID) {
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	return &pb.MemberRemoveResponse{Header: header(0), Members: c.members()}, nil
}

func (s *Server) removeMember(id uint64) (found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.added)
	s.added = slices.DeleteFunc(s.added, func(m *pb.Member) bool { return m.ID == id })
	return len(s.added) < before
}

func (c *clusterService) MemberUpdate(_ context.Context, r *pb.MemberUpdateRequest) (*pb.MemberUpdateResponse, error) {
	if err := c.s.updateMember(r.ID, r.PeerURLs); err != nil {
		return nil, err
	}
	return &pb.MemberUpdateResponse{Header: header(0), Members: c.members()}, nil
}

// updateMember sets a member's peer URLs. etcd leaves it to clients to check that they are.
func (s *Server) updateMember(id uint64, urls []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.findMember(id)
	switch {
	case id != memberID && m == nil:
		return rpctypes.ErrGRPCMemberNotFound
	case s.hasPeerURL(urls, id):
		return rpctypes.ErrGRPCPeerURLExist
	case m != nil:
		m.PeerURLs = urls
	default:
		s.peerURLs = urls
	}
	return nil
}

func (c *clusterService) MemberPromote(_ context.Context, r *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	c.s.mu.RLock()
	defer c.s.mu.RUnlock()
	switch m := c.s.findMember(r.ID); {
	case r.ID == memberID:
		return nil, rpctypes.ErrGRPCMemberNotLearner
	case m == nil:
		return nil, rpctypes.ErrGRPCMemberNotFound
	}
	return nil, rpctypes.ErrGRPCLearnerNotReady // it has not started, whether it is one or not
}
