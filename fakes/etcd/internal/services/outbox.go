package services

import (
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// outgoing is a response on its way to the client of a watch stream.
type outgoing struct {
	resp     *pb.WatchResponse
	fragment bool
	// more are the watchers that get the same as resp.WatchId. They are guarded
	// by the outbox until the sender takes the response.
	more []int64
}

// outbox queues what a watch stream has to send. A write that a thousand
// watchers see is queued once, encoded once, and wakes the sender once.
type outbox struct {
	c chan *outgoing

	mu sync.Mutex
	// last is the newest response with events for synced watchers while it waits in
	// c. A watcher that is added to it still gets its responses in order: the store
	// stays locked while it offers a revision to all watchers, and what a watcher got
	// before it was synced is of older revisions.
	last *outgoing
}

func newOutbox(size int) *outbox { return &outbox{c: make(chan *outgoing, size)} }

// offer queues r for the watcher id, or says that there is no room.
func (b *outbox) offer(id int64, fragment bool, r clientv3.WatchResponse) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil && b.last.fragment == fragment && sameEvents(b.last.resp.Events, r.Events) {
		b.last.more = append(b.last.more, id)
		return true
	}
	o := newOutgoing(id, fragment, r)
	if !keyspace.Offer(b.c, o, nil) {
		return false
	}
	b.last = o
	return true
}

// take hands o, received from c, over to the caller.
func (b *outbox) take(o *outgoing) *outgoing {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == o {
		b.last = nil
	}
	return o
}

// sameEvents reports whether a and b are one slice: the events of one revision,
// made once for all watchers with the same options.
func sameEvents(a, b []*mvccpb.Event) bool {
	return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0]
}

func newOutgoing(id int64, fragment bool, r clientv3.WatchResponse) *outgoing {
	return &outgoing{fragment: fragment, resp: &pb.WatchResponse{
		Header: r.Header, WatchId: id, Created: r.Created, Events: r.Events,
		CompactRevision: r.CompactRevision, Canceled: r.Canceled,
	}}
}

// deliver returns the function that delivers one watcher's responses to its stream.
func (g *grpcWatch) deliver(id int64, fragment bool) func(clientv3.WatchResponse, <-chan struct{}) bool {
	return func(r clientv3.WatchResponse, done <-chan struct{}) bool {
		if done == nil {
			return g.out.offer(id, fragment, r)
		}
		return keyspace.Offer(g.out.c, newOutgoing(id, fragment, r), done)
	}
}

// send sends a response to its watchers, a large one in fragments if asked to.
func (g *grpcWatch) send(o *outgoing) error {
	limit := g.s.cfg.MaxRequestBytes + grpcOverheadBytes
	if o.fragment && len(o.resp.Events) > 1 && proto.Size(o.resp) >= limit {
		return g.sendFragments(o, limit)
	}
	if len(o.more) == 0 {
		return g.stream.Send(o.resp)
	}
	return g.sendCopies(o)
}

// sendCopies encodes what the watchers share once: protobuf takes fields in
// any order, so each message is a watch id and those same bytes.
func (g *grpcWatch) sendCopies(o *outgoing) error {
	data, err := proto.Marshal(&pb.WatchResponse{Header: o.resp.Header, Events: o.resp.Events})
	if err != nil {
		return err
	}
	var shared mem.Buffer = mem.SliceBuffer(data)
	for _, id := range append(o.more, o.resp.WatchId) {
		message := encoded{shared}
		if id != 0 {
			message = encoded{mem.SliceBuffer(appendNumber(nil, watchID, id)), shared}
		}
		if err := g.stream.SendMsg(message); err != nil {
			return err
		}
	}
	return nil
}

// sendFragments sends responses smaller than limit bytes.
func (g *grpcWatch) sendFragments(o *outgoing, limit int) error {
	for _, id := range append(o.more, o.resp.WatchId) {
		for events := o.resp.Events; len(events) > 0; {
			part := &pb.WatchResponse{Header: o.resp.Header, WatchId: id}
			n := fitting(part, events, limit)
			part.Events, events = events[:n], events[n:]
			part.Fragment = len(events) > 0
			if err := g.stream.Send(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// fitting returns how many events, at least one, fit into less than limit bytes.
func fitting(envelope *pb.WatchResponse, events []*mvccpb.Event, limit int) int {
	envelope.Fragment = true
	size := proto.Size(envelope)
	for n, ev := range events {
		size += proto.Size(&pb.WatchResponse{Events: []*mvccpb.Event{ev}})
		if n > 0 && size >= limit {
			return n
		}
	}
	return len(events)
}
