package keyspace

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Limits of one step of a watcher that is fed from history.
const (
	BatchRevisions = 1000  // delivered at once, as in etcd
	batchScan      = 10000 // changes looked at while writers wait
)

// Watch is what a watcher follows, and where it delivers to.
type Watch struct {
	Key, RangeEnd   []byte
	Start           int64 // a revision; 0: whatever comes next
	PrevKV          bool
	NoPut, NoDelete bool
	Announce        bool            // sends a response when it is created
	Progress        bool            // sends progress notifications
	Context         context.Context // ends the watcher, if not nil

	// Deliver takes r or returns false. If done is nil it takes r only if there is
	// room; the store may be locked. Otherwise it waits for room until done is closed.
	Deliver func(r clientv3.WatchResponse, done <-chan struct{}) bool
	// Ended is called once, after the last delivery.
	Ended func()
}

// Offer sends v on c as a watcher delivers: if done is nil only if there is room, and
// otherwise until done is closed.
func Offer[T any](c chan<- T, v T, done <-chan struct{}) bool {
	if done == nil {
		select {
		case c <- v:
			return true
		default:
			return false
		}
	}
	select {
	case c <- v:
		return true
	case <-done:
		return false
	}
}

// Watcher follows a span. A synced one has been offered every change, and writers
// offer it the next; a lagging one is fed from the history by its own goroutine.
type Watcher struct {
	Watch
	span
	stream *Stream

	done       chan struct{} // closed when the watcher ends
	sentEvents atomic.Bool   // since the last progress interval

	// next is the first revision not delivered yet. While w lags it belongs to feed.
	next int64

	// The rest is guarded by the store's lock.
	seq    int64
	ended  bool
	group  *group // nil while it lags
	place  int    // in group
	unhook func()
	timer  *time.Timer
}

// errEmptyRange refuses a watch of no key, in etcd's words.
var errEmptyRange = errors.New("mvcc: watcher range is empty")

// span reads the key and range_end of a watch. An empty key means the smallest one.
func (r *Watch) span() span { return spanOf(cmp.Or(string(r.Key), "\x00"), string(r.RangeEnd)) }

// Check says why r cannot be watched.
func (r *Watch) Check() error {
	switch sp := r.span(); {
	case r.Start < 0:
		return rpctypes.ErrCompacted
	case sp.kind == halfOpen && sp.key >= sp.end:
		return errEmptyRange
	}
	return nil
}

// Stream is the watchers that share a stream of responses.
type Stream struct {
	s *Store

	// The rest is guarded by the store's lock.
	closed bool
	list   []*Watcher // oldest first
}

// NewStream returns a stream without watchers.
func (s *Store) NewStream() *Stream { return &Stream{s: s} }

// Close ends the watchers of the stream. Further ones are not started.
func (st *Stream) Close() {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.closed = true
	for _, w := range slices.Clone(st.list) {
		st.s.endWatcher(w)
	}
}

// Progress calls tell with a progress response and the watchers of the stream, if all of
// these have seen every change. Writers wait meanwhile; else the revision could move between
// two watchers. It reports false if the stream or the store is closed.
func (st *Stream) Progress(tell func(r clientv3.WatchResponse, watchers []*Watcher)) bool {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	lagging := func(w *Watcher) bool { return !s.progressPossible(w) }
	if len(st.list) > 0 && !slices.ContainsFunc(st.list, lagging) {
		tell(clientv3.WatchResponse{Header: Header(s.keys.rev)}, st.list)
	}
	return !s.closed && !st.closed
}

// synced says that w has been offered every change. The store is locked.
func (w *Watcher) synced() bool { return w.group != nil }

// Watch starts a watcher for r, which Check must accept. It returns nil if the stream or
// the store is closed.
func (st *Stream) Watch(r Watch) *Watcher {
	s := st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.closed || s.closed {
		return nil
	}
	w := &Watcher{Watch: r, span: r.span(), stream: st, done: make(chan struct{}), next: r.Start}
	st.list = append(st.list, w)
	s.watches.lastSeq++
	w.seq = s.watches.lastSeq
	if r.Start == 0 {
		w.next = s.keys.rev + 1
	}
	s.watches.alive[w] = struct{}{}
	first := clientv3.WatchResponse{Header: Header(s.keys.rev), Created: true}
	if !r.Announce || r.Deliver(first, nil) {
		first = clientv3.WatchResponse{}
	}
	if w.next > s.keys.rev && first.Header == nil {
		s.watches.join(w)
	} else {
		s.work.Go(func() { s.feed(w, first) })
	}
	if r.Progress {
		w.timer = s.After(s.cfg.ProgressNotifyInterval, func() { s.progressDue(w) })
	}
	if r.Context != nil {
		w.unhook = s.hook(r.Context, w.Cancel)
	}
	return w
}

// Cancel ends w, unless it has ended.
func (w *Watcher) Cancel() {
	s := w.stream.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endWatcher(w)
}

// endWatcher ends w. The store is locked.
func (s *Store) endWatcher(w *Watcher) {
	if w.ended {
		return
	}
	w.ended = true
	close(w.done)
	s.CancelTimer(w.timer)
	if w.unhook != nil {
		w.unhook()
	}
	delete(s.watches.alive, w)
	w.stream.list = slices.DeleteFunc(w.stream.list, func(o *Watcher) bool { return o == w })
	if w.synced() {
		s.watches.leave(w)
		w.Ended()
	}
	// The feed of a lagging watcher sees done and calls Ended itself.
}

// notify offers the changes of one revision to the synced watchers.
func (s *Store) notify(changes []change) {
	var touched []*group
	for i := range changes {
		s.watches.visit(string(changes[i].now.kv.Key), func(g *group) {
			if len(g.pending) == 0 {
				touched = append(touched, g)
			}
			g.pending = append(g.pending, changes[i])
		})
	}
	if len(touched) == 0 {
		return
	}
	hdr := Header(s.keys.rev)
	for _, g := range touched {
		s.notifyGroup(g, hdr)
		clear(g.pending)
		g.pending = g.pending[:0]
	}
}

// notifyGroup offers a group its pending changes; equal options share the events.
func (s *Store) notifyGroup(g *group, hdr *pb.ResponseHeader) {
	var shared [2][]*mvccpb.Event
	// Backwards, because a member that has no room leaves the group and the
	// last one takes its place.
	for i := len(g.members) - 1; i >= 0; i-- {
		w := g.members[i]
		if s.keys.rev < w.next {
			continue
		}
		variant := 0
		if w.PrevKV {
			variant = 1
		}
		if shared[variant] == nil {
			shared[variant] = eventsOf(g.pending, w.PrevKV)
		}
		events := w.filter(shared[variant])
		if len(events) == 0 {
			continue
		}
		news := clientv3.WatchResponse{Header: hdr, Events: events}
		if w.Deliver(news, nil) {
			w.sentEvents.Store(true)
			continue
		}
		w.next = s.keys.rev + 1
		s.watches.leave(w)
		s.work.Go(func() { s.feed(w, news) })
	}
}

func eventsOf(changes []change, prevKV bool) []*mvccpb.Event {
	events := make([]*mvccpb.Event, len(changes))
	for i := range changes {
		events[i] = eventOf(changes[i], prevKV)
	}
	return events
}

// filter returns the events w wants.
func (w *Watcher) filter(events []*mvccpb.Event) []*mvccpb.Event {
	if !w.NoPut && !w.NoDelete {
		return events
	}
	var kept []*mvccpb.Event
	for _, ev := range events {
		if w.wants(ev.Type) {
			kept = append(kept, ev)
		}
	}
	return kept
}

func (w *Watcher) wants(t mvccpb.Event_EventType) bool {
	return !(t == mvccpb.Event_PUT && w.NoPut || t == mvccpb.Event_DELETE && w.NoDelete)
}

// feed delivers first, unless it is empty, then history until w is synced or ended.
func (s *Store) feed(w *Watcher, first clientv3.WatchResponse) {
	alive := first.Header == nil || w.Deliver(first, w.done)
	if len(first.Events) > 0 {
		w.sentEvents.Store(true)
	}
	for alive {
		d, done := s.read(w)
		switch {
		case d.CompactRevision != 0:
			w.Deliver(d, w.done)
			w.Cancel()
			alive = false
		case len(d.Events) > 0:
			alive = w.catchUp(d)
		case done:
			if s.sync(w) {
				return
			}
			select {
			case <-w.done:
				alive = false
			default:
			}
		}
	}
	w.Ended()
}

// catchUp delivers a batch from the history; false means that w has ended. As in
// etcd, the header has the store's revision when the batch was read, or, if that
// has to wait for room, the revision up to which w has then seen everything.
func (w *Watcher) catchUp(d clientv3.WatchResponse) bool {
	w.sentEvents.Store(true)
	if w.Deliver(d, nil) {
		return true
	}
	d.Header = Header(w.next - 1)
	return w.Deliver(d, w.done)
}

// sync makes w synced if it has been delivered everything there is.
func (s *Store) sync(w *Watcher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.ended || w.next <= s.keys.rev {
		return false
	}
	s.watches.join(w)
	return true
}

// read gets a lagging watcher's next events from the history. done says that it has no more.
func (s *Store) read(w *Watcher) (d clientv3.WatchResponse, done bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if w.next < s.keys.compactRev {
		return clientv3.WatchResponse{Header: Header(0), CompactRevision: s.keys.compactRev, Canceled: true}, true
	}
	revs, scanned, last := 0, 0, int64(0)
	next, done := max(w.next, s.keys.rev+1), true
	for _, c := range s.history[s.history.from(w.next):] {
		if rev := c.rev(); rev != last {
			// A batch may end only between revisions.
			if revs == BatchRevisions || scanned >= batchScan {
				next, done = rev, false
				break
			}
			last = rev
		}
		scanned++
		if !w.contains(string(c.now.kv.Key)) || c.now.superseded && c.rev() == s.keys.compactRev {
			continue
		}
		ev := eventOf(c, w.PrevKV)
		if !w.wants(ev.Type) {
			continue
		}
		if ev.PrevKv != nil && c.rev()-1 < s.keys.compactRev {
			ev.PrevKv = nil
		}
		if n := len(d.Events); n == 0 || d.Events[n-1].Kv.ModRevision != last {
			revs++
		}
		d.Events = append(d.Events, ev)
	}
	w.next = next
	d.Header = Header(s.keys.rev)
	return d, done
}

// progressPossible says that w has seen every change so far. The store is locked.
func (s *Store) progressPossible(w *Watcher) bool {
	return w.synced() && s.keys.rev >= w.Start
}

// progressDue sends w the revision at each interval in which no events were sent.
func (s *Store) progressDue(w *Watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.ended {
		return
	}
	if !w.sentEvents.Swap(false) && s.progressPossible(w) {
		w.Deliver(clientv3.WatchResponse{Header: Header(s.keys.rev)}, nil)
	}
	w.timer = s.After(s.cfg.ProgressNotifyInterval, func() { s.progressDue(w) })
}
