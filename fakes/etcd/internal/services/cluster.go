package services

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"google.golang.org/protobuf/proto"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// maxLearners is etcd's default.
const maxLearners = 1

// clusterService answers the Cluster service of a cluster in which only one member ever
// starts; the others are only listed. As in etcd, changes that would take the quorum from the
// started members are refused. Other than in etcd, the one member goes on serving even if
// those that are only listed leave it without a quorum. As in etcd, the headers have no revision.
type clusterService struct {
	mu      sync.Mutex
	members []*pb.Member // this one, and those that are only listed
	pb.UnsafeClusterServer
}

// change changes the members, and returns copies of all, by id as etcd lists them.
func (c *clusterService) change(change func() error) ([]*pb.Member, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := change(); err != nil {
		return nil, err
	}
	var all []*pb.Member
	for _, m := range c.members {
		all = append(all, proto.CloneOf(m))
	}
	slices.SortFunc(all, func(a, b *pb.Member) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

func (c *clusterService) MemberList(context.Context, *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	members, err := c.change(func() error { return nil })
	return &pb.MemberListResponse{Header: keyspace.Header(0), Members: members}, err
}

// MemberAdd adds a member that will never start.
func (c *clusterService) MemberAdd(_ context.Context, r *pb.MemberAddRequest) (*pb.MemberAddResponse, error) {
	urls, err := types.NewURLs(r.PeerURLs)
	if err != nil {
		return nil, rpctypes.ErrGRPCMemberBadURLs
	}
	added := &pb.Member{ID: newMemberID(urls, time.Now()), PeerURLs: urls.StringSlice(), IsLearner: r.IsLearner}
	members, err := c.change(func() error {
		if err := c.addable(added); err != nil {
			return err
		}
		c.members = append(c.members, proto.CloneOf(added))
		return nil
	})
	return &pb.MemberAddResponse{Header: keyspace.Header(0), Member: added, Members: members}, err
}

// newMemberID is the id that etcd gives a member that is added to a cluster without a token.
func newMemberID(urls types.URLs, now time.Time) uint64 {
	sum := sha1.Sum([]byte(strings.Join(urls.StringSlice(), "") + strconv.FormatInt(now.Unix(), 10)))
	return binary.BigEndian.Uint64(sum[:8])
}

// addable says why a member cannot be added. The service is locked.
func (c *clusterService) addable(m *pb.Member) error {
	learners := 0
	for _, other := range c.members {
		if other.IsLearner {
			learners++
		}
	}
	switch voters := len(c.members) - learners; {
	case voters > 1 && !m.IsLearner:
		return rpctypes.ErrMemberNotEnoughStarted // see MemberRemove
	case voters > 1:
		return rpctypes.ErrGRPCUnhealthy
	case c.findMember(m.ID) != nil:
		return rpctypes.ErrGRPCMemberExist
	case c.hasPeerURL(m.PeerURLs, m.ID):
		return rpctypes.ErrGRPCPeerURLExist
	case m.IsLearner && learners == maxLearners:
		return rpctypes.ErrGRPCTooManyLearners
	}
	return nil
}

// findMember returns a member, nil if there is none of this id. The service is locked.
func (c *clusterService) findMember(id uint64) *pb.Member {
	if i := slices.IndexFunc(c.members, func(m *pb.Member) bool { return m.ID == id }); i >= 0 {
		return c.members[i]
	}
	return nil
}

// hasPeerURL reports whether a member with another id has one of the URLs. The service is locked.
func (c *clusterService) hasPeerURL(urls []string, id uint64) bool {
	return slices.ContainsFunc(c.members, func(m *pb.Member) bool {
		return m.ID != id && slices.ContainsFunc(urls, func(u string) bool { return slices.Contains(m.PeerURLs, u) })
	})
}

func (c *clusterService) MemberRemove(
	_ context.Context, r *pb.MemberRemoveRequest,
) (*pb.MemberRemoveResponse, error) {
	if r.ID == keyspace.MemberID {
		// By mistake, etcd returns the error of its client package, which has no gRPC code.
		return nil, rpctypes.ErrMemberNotEnoughStarted
	}
	members, err := c.change(func() error {
		before := len(c.members)
		c.members = slices.DeleteFunc(c.members, func(m *pb.Member) bool { return m.ID == r.ID })
		if len(c.members) == before {
			return rpctypes.ErrGRPCMemberNotFound
		}
		return nil
	})
	return &pb.MemberRemoveResponse{Header: keyspace.Header(0), Members: members}, err
}

// MemberUpdate sets a member's peer URLs. As in etcd, only clients check that these are URLs.
func (c *clusterService) MemberUpdate(
	_ context.Context, r *pb.MemberUpdateRequest,
) (*pb.MemberUpdateResponse, error) {
	members, err := c.change(func() error {
		m := c.findMember(r.ID)
		switch {
		case m == nil:
			return rpctypes.ErrGRPCMemberNotFound
		case c.hasPeerURL(r.PeerURLs, r.ID):
			return rpctypes.ErrGRPCPeerURLExist
		}
		m.PeerURLs = r.PeerURLs
		return nil
	})
	return &pb.MemberUpdateResponse{Header: keyspace.Header(0), Members: members}, err
}

func (c *clusterService) MemberPromote(
	_ context.Context, r *pb.MemberPromoteRequest,
) (*pb.MemberPromoteResponse, error) {
	_, err := c.change(func() error {
		switch {
		case r.ID == keyspace.MemberID:
			return rpctypes.ErrGRPCMemberNotLearner
		case c.findMember(r.ID) == nil:
			return rpctypes.ErrGRPCMemberNotFound
		}
		return rpctypes.ErrGRPCLearnerNotReady // it has not started, learner or not
	})
	return nil, err
}
