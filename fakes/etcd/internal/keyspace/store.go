package keyspace

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Familiar IDs: those that etcd gives a "default" member with default peer URLs.
const (
	clusterID uint64 = 0xcdf818194e3a8c32
	MemberID  uint64 = 0x8e9e05c52164694d
	RaftTerm  uint64 = 2
)

// Config is the limits and intervals of a store. None has a default.
type Config struct {
	MaxRequestBytes, MaxTxnOps int
	MinLeaseTTL                int64 // seconds
	ProgressNotifyInterval     time.Duration
	QuotaBytes                 int64 // negative: none
}

// Store is a key space with a single member to serve it. Its methods may be called
// from any goroutine.
type Store struct {
	cfg Config

	closing context.Context // done when Close begins
	cancel  context.CancelFunc
	work    sync.WaitGroup // goroutines, timers and context callbacks that Close joins

	rev atomic.Int64 // the current revision, readable without the lock

	// mu guards everything below. It is never held while waiting.
	mu        sync.RWMutex
	closed    bool
	keys      keyspace
	history   history
	leases    lessor
	watches   registry
	raftIndex uint64 // counts the proposals a real etcd would have in its log
	// frozen is an unchanging copy of keys, nil if none was needed since the last write.
	frozen *keyspace
	alarms []*pb.AlarmMember
}

// New returns an empty store at revision 1.
func New(cfg Config) *Store {
	s := &Store{cfg: cfg, keys: newKeyspace(), leases: newLessor(), watches: newRegistry()}
	s.closing, s.cancel = context.WithCancel(context.Background())
	s.closing.Done() // makes its channel here, and not in the bubble of a first user
	s.rev.Store(s.keys.rev)
	return s
}

// Revision returns the current revision of the store.
func (s *Store) Revision() int64 { return s.rev.Load() }

// Closing returns a context that is done when Close begins.
func (s *Store) Closing() context.Context { return s.closing }

// Close ends every watcher and lease and joins what runs on the store's behalf.
// Later requests fail with "server stopped". Closing twice is fine.
func (s *Store) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.cancel()
		s.leases.stop(s)
		for _, w := range s.watches.all() {
			s.endWatcher(w)
		}
	}
	s.mu.Unlock()
	s.work.Wait()
}

// After calls fn in its own goroutine when d has passed. The caller keeps the
// timer and makes sure that it is cancelled with CancelTimer when the store closes.
func (s *Store) After(d time.Duration, fn func()) *time.Timer {
	s.work.Add(1)
	return time.AfterFunc(d, func() {
		defer s.work.Done()
		fn()
	})
}

// CancelTimer stops a timer made by After, nil included.
func (s *Store) CancelTimer(t *time.Timer) {
	if t != nil && t.Stop() {
		s.work.Done()
	}
}

// Hook calls fn in its own goroutine, which Close joins, when ctx is done. The caller
// makes sure that it is unhooked, if ctx is not done, when the store closes. A store
// that is closed hooks nothing and reports false.
func (s *Store) Hook(ctx context.Context, fn func()) (unhook func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return func() {}, false
	}
	return s.hook(ctx, fn), true
}

// hook is Hook with the store locked, and not closed.
func (s *Store) hook(ctx context.Context, fn func()) (unhook func()) {
	s.work.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer s.work.Done()
		fn()
	})
	return func() {
		if stop() {
			s.work.Done()
		}
	}
}

// Go runs fn in a goroutine that Close joins, or reports that the store is closed.
func (s *Store) Go(fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Go(fn)
	}
	return !s.closed
}

// Stats is what its status and metrics say of a store.
type Stats struct {
	Header            *pb.ResponseHeader
	CompactRevision   int64
	Bytes             int64 // of all versions, about
	QuotaBytes        int64
	RaftIndex         uint64
	Watchers, Lagging int
	Alarms            []*pb.AlarmMember
}

// Stats describes the store at one moment. The error says that it is closed.
func (s *Store) Stats() (Stats, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := Stats{
		Header: Header(s.keys.rev), CompactRevision: s.keys.compactRev, RaftIndex: s.raftIndex,
		Bytes: s.keys.bytes, QuotaBytes: s.cfg.QuotaBytes, Alarms: slices.Clone(s.alarms),
		Watchers: len(s.watches.alive),
	}
	for w := range s.watches.alive {
		if !w.synced() {
			st.Lagging++
		}
	}
	if s.closed {
		return st, rpctypes.ErrGRPCStopped
	}
	return st, nil
}

// locked answers a request with the store locked, at the current revision.
func locked[A any](s *Store, answer func(h *pb.ResponseHeader) (*A, error)) (*A, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, rpctypes.ErrGRPCStopped
	}
	return answer(Header(s.keys.rev))
}

// Header returns the response header of an answer given at revision rev.
func Header(rev int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: clusterID, MemberId: MemberID, Revision: rev, RaftTerm: RaftTerm}
}
