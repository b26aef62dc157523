package differential

import (
	"cmp"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// leaseSlots is how many leases a sequence has at a time.
const leaseSlots = 4

// absentLease is the id of a lease that never is granted.
const absentLease = 42

// System is one of the etcds compared.
type System struct {
	Name   string
	Client *clientv3.Client

	leases  [leaseSlots]clientv3.LeaseID
	granted map[int64]int64 // number of the lease, by id
	watches map[int]*watch
}

// lease returns the id the lease in a slot has here.
func (s *System) lease(slot int) clientv3.LeaseID {
	if s.leases[slot] == 0 {
		return absentLease
	}
	return s.leases[slot]
}

// grant notes that a slot has a lease.
func (s *System) grant(slot int, id clientv3.LeaseID) {
	s.leases[slot] = id
	s.granted[int64(id)] = int64(len(s.granted) + 1)
}

// nth numbers leases by grant, so that they compare equal though their ids differ.
func (s *System) nth(id int64) int64 {
	if n, ok := s.granted[id]; ok {
		return n
	}
	return id
}

// normal returns a copy of m without what may differ: who answered, ids of leases.
func (s *System) normal(m proto.Message) proto.Message {
	m = proto.Clone(m)
	// A message comes after those in it.
	_ = protorange.Options{}.Range(m.ProtoReflect(), nil, func(path protopath.Values) error {
		if part, ok := path.Index(-1).Value.Interface().(protoreflect.Message); ok {
			s.normalize(part.Interface())
		}
		return nil
	})
	return m
}

// normalize is normal for a message alone, without those in it.
func (s *System) normalize(m proto.Message) {
	switch m := m.(type) {
	case *pb.ResponseHeader:
		m.ClusterId, m.MemberId, m.RaftTerm = 0, 0, 0
	case *mvccpb.KeyValue:
		m.Lease = s.nth(m.Lease)
	case *pb.LeaseTimeToLiveResponse:
		m.ID = s.nth(m.ID)
		if m.TTL > 0 {
			m.TTL = 1 // time passes
		}
		slices.SortFunc(m.Keys, slices.Compare[[]byte])
	case *pb.LeaseStatus:
		m.ID = s.nth(m.ID)
	case *pb.LeaseLeasesResponse:
		slices.SortFunc(m.Leases, func(a, b *pb.LeaseStatus) int { return cmp.Compare(a.ID, b.ID) })
	}
}
