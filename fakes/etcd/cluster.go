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

// change changes the members, and returns copies of all, by id as etcd lists them.
func (c *clusterService) change(change func(*Server) error) ([]*pb.Member, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if err := change(c.s); err != nil {
		return nil, err
	}
	var all []*pb.Member
	for _, m := range c.s.members {
		all = append(all, proto.CloneOf(m))
	}
	slices.SortFunc(all, func(a, b *pb.Member) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

func (c *clusterService) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	members, err := c.change(func(*Server) error { return nil })
	return &pb.MemberListResponse{Header: header(0), Members: members}, err
}

// MemberAdd adds a member that will never start.
func (c *clusterService) MemberAdd(_ context.Context, r *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	urls, err := types.NewURLs(r.PeerURLs)
	if err != nil {
		return nil, rpctypes.ErrGRPCMemberBadURLs
	}
	added := &pb.Member{ID: newMemberID(urls, time.Now()), PeerURLs: urls.StringSlice(), IsLearner: r.IsLearner}
	members, err := c.change(func(s *Server) error {
		if err := s.addable(added); err != nil {
			return err
		}
		s.members = append(s.members, proto.CloneOf(added))
		return nil
	})
	return &pb.MemberAddResponse{Header: header(0), Member: added, Members: members}, err
}

// newMemberID is the id that etcd gives a member that is added to a cluster without a token.
func newMemberID(urls types.URLs, now time.Time) uint64 {
	sum := sha1.Sum([]byte(strings.Join(urls.StringSlice(), "") + strconv.FormatInt(now.Unix(), 10)))
	return binary.BigEndian.Uint64(sum[:8])
}

// addable says why a member cannot be added. The server is locked.
func (s *Server) addable(m *pb.Member) error {
	learners := 0
	for _, other := range s.members {
		if other.IsLearner {
			learners++
		}
	}
	switch voters := len(s.members) - learners; {
	case voters > 1 && !m.IsLearner:
		return rpctypes.ErrMemberNotEnoughStarted // see MemberRemove
	case voters > 1:
		return rpctypes.ErrGRPCUnhealthy
	case s.findMember(m.ID) != nil:
		return rpctypes.ErrGRPCMemberExist
	case s.hasPeerURL(m.PeerURLs, m.ID):
		return rpctypes.ErrGRPCPeerURLExist
	case m.IsLearner && learners == maxLearners:
		return rpctypes.ErrGRPCTooManyLearners
	}
	return nil
}

// findMember returns a member, nil if there is none of this id. The server is locked.
func (s *Server) findMember(id uint64) *pb.Member {
	if i := slices.IndexFunc(s.members, func(m *pb.Member) bool { return m.ID == id }); i >= 0 {
		return s.members[i]
	}
	return nil
}

// hasPeerURL reports whether a member with another id has one of the URLs. The server is locked.
func (s *Server) hasPeerURL(urls []string, id uint64) bool {
	return slices.ContainsFunc(s.members, func(m *pb.Member) bool {
		return m.ID != id && slices.ContainsFunc(urls, func(u string) bool { return slices.Contains(m.PeerURLs, u) })
	})
}

func (c *clusterService) MemberRemove(
	_ context.Context, r *pb.MemberRemoveRequest,
) (*pb.MemberRemoveResponse, error) {
	if r.ID == memberID {
		// The client's error, and so without a gRPC code: a mistake of etcd's.
		return nil, rpctypes.ErrMemberNotEnoughStarted
	}
	members, err := c.change(func(s *Server) error {
		before := len(s.members)
		s.members = slices.DeleteFunc(s.members, func(m *pb.Member) bool { return m.ID == r.ID })
		if len(s.members) == before {
			return rpctypes.ErrGRPCMemberNotFound
		}
		return nil
	})
	return &pb.MemberRemoveResponse{Header: header(0), Members: members}, err
}

// MemberUpdate sets a member's peer URLs. etcd leaves it to clients to check that they are.
func (c *clusterService) MemberUpdate(
	_ context.Context, r *pb.MemberUpdateRequest,
) (*pb.MemberUpdateResponse, error) {
	members, err := c.change(func(s *Server) error {
		m := s.findMember(r.ID)
		switch {
		case m == nil:
			return rpctypes.ErrGRPCMemberNotFound
		case s.hasPeerURL(r.PeerURLs, r.ID):
			return rpctypes.ErrGRPCPeerURLExist
		}
		m.PeerURLs = r.PeerURLs
		return nil
	})
	return &pb.MemberUpdateResponse{Header: header(0), Members: members}, err
}

func (c *clusterService) MemberPromote(
	_ context.Context, r *pb.MemberPromoteRequest,
) (*pb.MemberPromoteResponse, error) {
	_, err := c.change(func(s *Server) error {
		switch {
		case r.ID == memberID:
			return rpctypes.ErrGRPCMemberNotLearner
		case s.findMember(r.ID) == nil:
			return rpctypes.ErrGRPCMemberNotFound
		}
		return rpctypes.ErrGRPCLearnerNotReady // it has not started, whether it is one or not
	})
	return nil, err
}
