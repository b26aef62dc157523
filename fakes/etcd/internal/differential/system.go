package differential

import (
	"cmp"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
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

// nth returns the number of the lease with that id, in the order of grants, so
// that leases compare equal though their ids differ.
func (s *System) nth(id int64) int64 {
	if n, ok := s.granted[id]; ok {
		return n
	}
	return id
}

// normal returns a copy of a message with what may differ between two etcds
// taken out: who answered, and the ids of leases.
func (s *System) normal(m proto.Message) proto.Message {
	switch m := proto.Clone(m).(type) {
	case *pb.RangeResponse:
		s.normalRange(m)
		return m
	case *pb.PutResponse:
		s.normalPut(m)
		return m
	case *pb.DeleteRangeResponse:
		s.normalDelete(m)
		return m
	case *pb.TxnResponse:
		s.normalTxn(m)
		return m
	case *mvccpb.Event:
		s.normalKV(m.Kv)
		s.normalKV(m.PrevKv)
		return m
	case *pb.LeaseTimeToLiveResponse:
		normalHeader(m.Header)
		m.ID = s.nth(m.ID)
		if m.TTL > 0 {
			m.TTL = 1 // time passes
		}
		slices.SortFunc(m.Keys, slices.Compare[[]byte])
		return m
	case *pb.LeaseLeasesResponse:
		normalHeader(m.Header)
		for _, l := range m.Leases {
			l.ID = s.nth(l.ID)
		}
		slices.SortFunc(m.Leases, func(a, b *pb.LeaseStatus) int { return cmp.Compare(a.ID, b.ID) })
		return m
	case interface {
		proto.Message
		GetHeader() *pb.ResponseHeader
	}:
		normalHeader(m.GetHeader())
		return m
	default:
		return m
	}
}

func normalHeader(h *pb.ResponseHeader) {
	if h != nil {
		h.ClusterId, h.MemberId, h.RaftTerm = 0, 0, 0
	}
}

func (s *System) normalKV(kv *mvccpb.KeyValue) {
	if kv != nil {
		kv.Lease = s.nth(kv.Lease)
	}
}

func (s *System) normalRange(m *pb.RangeResponse) {
	normalHeader(m.GetHeader())
	for _, kv := range m.GetKvs() {
		s.normalKV(kv)
	}
}

func (s *System) normalPut(m *pb.PutResponse) {
	normalHeader(m.GetHeader())
	s.normalKV(m.GetPrevKv())
}

func (s *System) normalDelete(m *pb.DeleteRangeResponse) {
	normalHeader(m.GetHeader())
	for _, kv := range m.GetPrevKvs() {
		s.normalKV(kv)
	}
}

func (s *System) normalTxn(m *pb.TxnResponse) {
	normalHeader(m.GetHeader())
	for _, r := range m.GetResponses() {
		s.normalRange(r.GetResponseRange())
		s.normalPut(r.GetResponsePut())
		s.normalDelete(r.GetResponseDeleteRange())
		if inner := r.GetResponseTxn(); inner != nil {
			s.normalTxn(inner)
		}
	}
}
