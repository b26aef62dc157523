package etcd

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Server is an in-memory etcd with a single member. Its methods may be called
// from any goroutine.
type Server struct {
	cfg Config

	done chan struct{}  // closed when Close begins
	work sync.WaitGroup // goroutines, timers and context callbacks that Close joins

	rev       atomic.Int64  // the current revision, readable without the lock
	raftIndex atomic.Uint64 // counts the proposals a real etcd would have in its log

	// mu guards everything below. It is never held while waiting.
	mu      sync.RWMutex
	closed  bool
	keys    keyspace
	history history
	leases  lessor
	watches registry
	// frozen is an unchanging copy of keys, nil if none was needed since the last write.
	frozen      *keyspace
	clients     []*client
	grpcServers []*grpc.Server
	alarms      []*pb.AlarmMember
	members     []*pb.Member // this one, and those that are only listed

	http func() http.Handler // made when it is first needed
}

// New returns an empty server at revision 1.
func New(cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Server{
		cfg:     cfg,
		done:    make(chan struct{}),
		keys:    newKeyspace(),
		leases:  newLessor(),
		watches: newRegistry(),
	}
	s.cfg.Endpoint = cmp.Or(cfg.Endpoint, fmt.Sprintf("memory:%p", s))
	if len(cfg.ClientURLs) == 0 {
		s.cfg.ClientURLs = []string{s.cfg.Endpoint}
	}
	s.members = []*pb.Member{{ID: memberID, Name: s.cfg.Name, PeerURLs: s.cfg.PeerURLs, ClientURLs: s.cfg.ClientURLs}}
	s.rev.Store(s.keys.rev)
	s.http = sync.OnceValue(s.newHTTPHandler)
	return s, nil
}

// Revision returns the current revision of the store.
func (s *Server) Revision() int64 { return s.rev.Load() }

// Close ends every watch, lease and gRPC connection and joins all goroutines.
// Later requests fail with "server stopped". Closing twice is fine.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.work.Wait()
		return nil
	}
	s.closed = true
	close(s.done)
	s.leases.stop(s)
	for _, w := range s.watches.all() {
		s.endWatcher(w)
	}
	clients, grpcServers := s.clients, s.grpcServers
	s.clients, s.grpcServers = nil, nil
	s.mu.Unlock()

	for _, c := range clients {
		_ = c.v3.Close()
	}
	for _, g := range grpcServers {
		g.Stop()
	}
	s.work.Wait()
	return nil
}

// after calls fn in its own goroutine when d has passed. The caller keeps the
// timer and makes sure that Close cancels it with s.cancelTimer.
func (s *Server) after(d time.Duration, fn func()) *time.Timer {
	s.work.Add(1)
	return time.AfterFunc(d, func() {
		defer s.work.Done()
		fn()
	})
}

// cancelTimer stops a timer made by s.after, nil included.
func (s *Server) cancelTimer(t *time.Timer) {
	if t != nil && t.Stop() {
		s.work.Done()
	}
}

// What a write costs besides its keys and values, as etcd estimates it.
const (
	keyCost   = 256
	leaseCost = 64
)

// spend raises an alarm if there is no room for a write of a cost. The server is locked.
func (s *Server) spend(cost int) error {
	quota := s.cfg.QuotaBytes
	if cost == 0 || quota < 0 || s.keys.bytes+int64(cost) < quota {
		return nil
	}
	s.raise(&pb.AlarmMember{MemberID: memberID, Alarm: pb.AlarmType_NOSPACE})
	return rpctypes.ErrGRPCNoSpace
}

// raise adds an alarm, if it is not raised already. The server is locked.
func (s *Server) raise(alarm *pb.AlarmMember) {
	if !slices.ContainsFunc(s.alarms, func(a *pb.AlarmMember) bool { return proto.Equal(a, alarm) }) {
		s.alarms = append(s.alarms, alarm)
	}
}

// alarmed says why an alarm forbids a write; spends says that the write takes
// space. The server is locked.
func (s *Server) alarmed(spends bool) error {
	for _, a := range s.alarms {
		if a.Alarm == pb.AlarmType_CORRUPT {
			return rpctypes.ErrGRPCCorrupt
		}
	}
	if spends && len(s.alarms) > 0 {
		return rpctypes.ErrGRPCNoSpace
	}
	return nil
}

// locked answers a request with the server locked, at the current revision.
func locked[A any](s *Server, answer func(h *pb.ResponseHeader) (*A, error)) (*A, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, rpctypes.ErrGRPCStopped
	}
	return answer(header(s.keys.rev))
}

// header returns the response header of an answer given at revision rev.
func header(rev int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: clusterID, MemberId: memberID, Revision: rev, RaftTerm: raftTerm}
}

// complete adds the server's identity to a header that only has a revision.
func complete(h *pb.ResponseHeader) {
	h.ClusterId, h.MemberId, h.RaftTerm = clusterID, memberID, raftTerm
}

// writeTxn collects the changes of one transaction, all of which get the
// revision after the current one. The server is locked from begin to end.
type writeTxn struct {
	s       *Server
	changes []change
}

// begin locks the server for a write. What takes space has a cost in bytes.
func (s *Server) begin(cost int) (*writeTxn, error) {
	s.mu.Lock()
	err := cmp.Or(s.spend(cost), s.alarmed(cost > 0))
	if s.closed {
		err = rpctypes.ErrGRPCStopped
	}
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	s.raftIndex.Add(1)
	return &writeTxn{s: s}, nil
}

// rev returns the revision reads inside the transaction see.
func (t *writeTxn) rev() int64 {
	if len(t.changes) > 0 {
		return t.s.keys.rev + 1
	}
	return t.s.keys.rev
}

// end publishes the changes and unlocks the server.
func (t *writeTxn) end() {
	t.publish()
	t.s.mu.Unlock()
}

// publish turns the changes, if there are any, into a new revision.
func (t *writeTxn) publish() {
	s := t.s
	if len(t.changes) == 0 {
		return
	}
	s.keys.rev++
	s.rev.Store(s.keys.rev)
	for _, c := range t.changes {
		s.history.append(c)
	}
	s.notify(t.changes)
}

// put writes key, whose record is rec, and returns its record. keyBytes may be nil.
func (t *writeTxn) put(key string, rec *record, keyBytes, value []byte, lease int64) *record {
	s := t.s
	v := &version{sub: int32(len(t.changes))}
	rev := s.keys.rev + 1
	v.kv.Value, v.kv.Lease = value, lease
	v.kv.CreateRevision, v.kv.ModRevision, v.kv.Version = rev, rev, 1

	oldLease := int64(0)
	if rec != nil {
		keyBytes = rec.head.kv.Key
		if !rec.head.tombstone() {
			v.kv.CreateRevision = rec.head.kv.CreateRevision
			v.kv.Version = rec.head.kv.Version + 1
			oldLease = rec.head.kv.Lease
		}
	}
	if keyBytes == nil {
		keyBytes = []byte(key)
	}
	v.kv.Key = keyBytes
	if oldLease != lease {
		s.leases.move(key, oldLease, lease)
	}
	return t.record(key, rec, v)
}

// delete leaves a tombstone for key, whose record is rec.
func (t *writeTxn) delete(key string, rec *record) {
	v := &version{sub: int32(len(t.changes))}
	v.kv.Key = rec.head.kv.Key
	v.kv.ModRevision = t.s.keys.rev + 1
	lease := rec.head.kv.Lease
	t.record(key, rec, v)
	if lease != 0 {
		t.s.leases.move(key, lease, 0)
	}
}

// record makes v the newest version of key and notes the change.
func (t *writeTxn) record(key string, rec *record, v *version) *record {
	c := change{now: v}
	if rec != nil {
		c.prev = rec.at(t.s.keys.rev)
		if rec.head.kv.ModRevision == v.kv.ModRevision {
			rec.head.superseded = true
		}
	}
	t.s.frozen = nil
	t.changes = append(t.changes, c)
	return t.s.keys.put(key, rec, v)
}

// deleteRange deletes the keys of sp and returns their last versions.
func (t *writeTxn) deleteRange(sp span) []*mvccpb.KeyValue {
	k := &t.s.keys
	if sp.kind == singleKey {
		rec := k.record(sp.key)
		if rec == nil || rec.head.tombstone() {
			return nil
		}
		prev := &rec.head.kv
		t.delete(sp.key, rec)
		return []*mvccpb.KeyValue{prev}
	}
	var keys []string
	var prev []*mvccpb.KeyValue
	k.ascend(sp, t.rev(), func(key string, v *version) bool {
		keys = append(keys, key)
		prev = append(prev, &v.kv)
		return true
	})
	for _, key := range keys {
		t.delete(key, k.record(key))
	}
	return prev
}

// freeze returns an unchanging copy of the key space. The server is locked.
func (s *Server) freeze() *keyspace {
	if s.frozen == nil {
		k := s.keys.clone()
		s.frozen = &k
	}
	return s.frozen
}
