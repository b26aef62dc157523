package etcd

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
)

// Limits of one step of a watcher that is fed from history.
const (
	batchRevisions = 1000  // delivered at once, as in etcd
	batchScan      = 10000 // changes looked at while writers wait
)

// delivery is something that a watcher has to send to its client.
type delivery struct {
	header  *pb.ResponseHeader
	events  []*mvccpb.Event
	created bool
	// compacted is the compact revision, if this ends a watcher whose position is older.
	compacted int64
}

// sink is where a watcher delivers to.
type sink interface {
	// deliver takes d or returns false. If done is nil it takes d only if there is
	// room; the server may be locked. Otherwise it waits for room until done is closed.
	deliver(d delivery, done <-chan struct{}) bool
	// ended is called once, after the last delivery.
	ended()
}

// offer sends v on c as a sink delivers: if done is nil only if there is room, and otherwise
// until done is closed.
func offer[T any](c chan<- T, v T, done <-chan struct{}) bool {
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

// watcher follows a span. A synced one has been offered every change, and writers
// offer it the next; a lagging one is fed from the history by its own goroutine.
type watcher struct {
	span
	start    int64 // the revision asked for; 0: whatever comes next
	prevKV   bool
	noPut    bool
	noDelete bool
	announce bool // sends a response when it is created
	progress bool // sends progress notifications
	sink     sink
	ctx      context.Context // ends the watcher, if not nil

	done       chan struct{} // closed when the watcher ends
	sentEvents atomic.Bool   // since the last progress interval

	// next is the first revision not delivered yet. While w lags it belongs to feed.
	next int64

	// The rest is guarded by the server's lock.
	seq    int64
	ended  bool
	group  *group // nil while it lags
	index  int    // in group
	set    *watchSet
	unhook func() bool
	timer  *time.Timer
}

// watchedSpan reads the key and range_end of a watch, whose empty key is the smallest.
func watchedSpan(key, end []byte) span {
	return spanOf(cmp.Or(string(key), "\x00"), string(end))
}

// errEmptyRange refuses a watch of no key, in etcd's words.
var errEmptyRange = errors.New("mvcc: watcher range is empty")

// watchable says why nothing can be watched in a span from a revision.
func (s span) watchable(start int64) error {
	switch {
	case start < 0:
		return rpctypes.ErrCompacted
	case s.kind == halfOpen && s.key >= s.end:
		return errEmptyRange
	}
	return nil
}

// watchSet is a stream's watchers, oldest first, guarded by the server's lock.
type watchSet struct{ list []*watcher }

// synced says that w has been offered every change. The server is locked.
func (w *watcher) synced() bool { return w.group != nil }

// add starts w as one of set. The server is locked, and not closed.
func (s *Server) add(w *watcher, set *watchSet) {
	w.set = set
	set.list = append(set.list, w)
	s.watches.lastSeq++
	w.seq = s.watches.lastSeq
	w.done = make(chan struct{})
	w.next = w.start
	if w.start == 0 {
		w.next = s.keys.rev + 1
	}
	s.watches.alive[w] = struct{}{}
	created := delivery{header: header(s.keys.rev), created: true}
	if w.announce && w.sink.deliver(created, nil) {
		w.announce = false
	}
	if w.next > s.keys.rev && !w.announce {
		s.watches.join(w)
	} else {
		s.work.Add(1)
		if !w.announce {
			created = delivery{}
		}
		go s.feed(w, created)
	}
	if w.progress {
		w.timer = s.after(s.cfg.ProgressNotifyInterval, func() { s.progressDue(w) })
	}
	if w.ctx != nil {
		s.work.Add(1)
		w.unhook = context.AfterFunc(w.ctx, func() {
			defer s.work.Done()
			s.cancel(w)
		})
	}
}

// cancel ends w, unless it has ended.
func (s *Server) cancel(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endWatcher(w)
}

// endWatcher ends w. The server is locked.
func (s *Server) endWatcher(w *watcher) {
	if w.ended {
		return
	}
	w.ended = true
	close(w.done)
	s.cancelTimer(w.timer)
	if w.unhook != nil && w.unhook() {
		s.work.Done()
	}
	delete(s.watches.alive, w)
	w.set.list = slices.DeleteFunc(w.set.list, func(o *watcher) bool { return o == w })
	if w.synced() {
		s.watches.leave(w)
		w.sink.ended()
	}
	// A lagging watcher's feed sees done and calls ended itself.
}

// notify offers the changes of one revision to the synced watchers.
func (s *Server) notify(changes []change) {
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
	hdr := header(s.keys.rev)
	for _, g := range touched {
		s.notifyGroup(g, hdr)
		clear(g.pending)
		g.pending = g.pending[:0]
	}
}

// notifyGroup offers a group its pending changes; equal options share the events.
func (s *Server) notifyGroup(g *group, hdr *pb.ResponseHeader) {
	var shared [2][]*mvccpb.Event
	// Backwards, because a member that has no room leaves the group and the
	// last one takes its place.
	for i := len(g.members) - 1; i >= 0; i-- {
		w := g.members[i]
		if s.keys.rev < w.next {
			continue
		}
		variant := 0
		if w.prevKV {
			variant = 1
		}
		if shared[variant] == nil {
			shared[variant] = eventsOf(g.pending, w.prevKV)
		}
		events := w.filter(shared[variant])
		if len(events) == 0 {
			continue
		}
		if w.sink.deliver(delivery{header: hdr, events: events}, nil) {
			w.sentEvents.Store(true)
			continue
		}
		w.next = s.keys.rev + 1
		s.watches.leave(w)
		s.work.Add(1)
		go s.feed(w, delivery{header: hdr, events: events})
	}
}

func eventsOf(changes []change, prevKV bool) []*mvccpb.Event {
	events := make([]*mvccpb.Event, len(changes))
	for i := range changes {
		events[i] = eventOf(&changes[i], prevKV)
	}
	return events
}

// filter returns the events w wants.
func (w *watcher) filter(events []*mvccpb.Event) []*mvccpb.Event {
	if !w.noPut && !w.noDelete {
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

func (w *watcher) wants(t mvccpb.Event_EventType) bool {
	return !(t == mvccpb.Event_PUT && w.noPut || t == mvccpb.Event_DELETE && w.noDelete)
}

// feed delivers first, unless it is empty, then history until w is synced or ended.
func (s *Server) feed(w *watcher, first delivery) {
	defer s.work.Done()
	alive := first.header == nil || w.sink.deliver(first, w.done)
	if len(first.events) > 0 {
		w.sentEvents.Store(true)
	}
	for alive {
		d, done := s.read(w)
		switch {
		case d.compacted != 0:
			w.sink.deliver(d, w.done)
			s.cancel(w)
			alive = false
		case len(d.events) > 0:
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
	w.sink.ended()
}

// catchUp delivers a batch from the history; false means that w has ended. As in
// etcd, the header has the store's revision when the batch was read, or, if that
// has to wait for room, the revision up to which w has then seen everything.
func (w *watcher) catchUp(d delivery) bool {
	w.sentEvents.Store(true)
	if w.sink.deliver(d, nil) {
		return true
	}
	d.header = header(w.next - 1)
	return w.sink.deliver(d, w.done)
}

// sync makes w synced if it has been delivered everything there is.
func (s *Server) sync(w *watcher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.ended || w.next <= s.keys.rev {
		return false
	}
	s.watches.join(w)
	return true
}

// read gets a lagging watcher's next events from the history; done: it has no more.
func (s *Server) read(w *watcher) (d delivery, done bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if w.next < s.keys.compactRev {
		return delivery{header: header(0), compacted: s.keys.compactRev}, true
	}
	h := &s.history
	revs, last := 0, int64(0)
	i := h.from(w.next)
	for scanned := 0; i < h.n; i++ {
		c := h.at(i)
		if rev := c.rev(); rev != last {
			// A batch may end only between revisions.
			if revs == batchRevisions || scanned >= batchScan {
				break
			}
			last = rev
		}
		scanned++
		if !w.contains(string(c.now.kv.Key)) || c.now.superseded && c.rev() == s.keys.compactRev {
			continue
		}
		ev := eventOf(c, w.prevKV)
		if !w.wants(ev.Type) {
			continue
		}
		if ev.PrevKv != nil && c.rev()-1 < s.keys.compactRev {
			ev.PrevKv = nil
		}
		if n := len(d.events); n == 0 || d.events[n-1].Kv.ModRevision != last {
			revs++
		}
		d.events = append(d.events, ev)
	}
	if i < h.n {
		w.next = h.at(i).rev()
	} else {
		w.next = max(w.next, s.keys.rev+1)
		done = true
	}
	d.header = header(s.keys.rev)
	return d, done
}

// allSynced says whether all watchers of set are up to date. The server is locked.
func (s *Server) allSynced(set *watchSet) bool {
	return !slices.ContainsFunc(set.list, func(w *watcher) bool { return !s.progressPossible(w) })
}

// tellProgress offers w the revision if it is up to date. The server is locked.
func (s *Server) tellProgress(w *watcher) {
	if s.progressPossible(w) {
		w.sink.deliver(delivery{header: header(s.keys.rev)}, nil)
	}
}

// progressPossible says that w has seen every change so far. The server is locked.
func (s *Server) progressPossible(w *watcher) bool {
	return w.synced() && s.keys.rev >= w.start
}

// progressDue sends w the revision at each interval in which no events were sent.
func (s *Server) progressDue(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.ended {
		return
	}
	if !w.sentEvents.Swap(false) {
		s.tellProgress(w)
	}
	w.timer = s.after(s.cfg.ProgressNotifyInterval, func() { s.progressDue(w) })
}
