package etcd

import (
	"context"
	"errors"
	"io"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

var errDuplicateWatch = errors.New("mvcc: duplicate watch ID provided on the WatchStream")

// watchService answers the Watch service.
type watchService struct {
	s *Server
	pb.UnsafeWatchServer
}

// grpcWatch is one watch stream: any number of watchers that deliver into one
// outbox, from which the stream's only sender takes.
type grpcWatch struct {
	s      *Server
	stream grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchResponse]
	out    *outbox
	set    *watchSet

	// The rest is guarded by the server's lock.
	closed bool
	ids    map[int64]*watcher
	nextID int64
}

// Watch serves a stream until the client or the server ends it.
func (ws *watchService) Watch(stream grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchResponse]) error {
	g := &grpcWatch{
		s: ws.s, stream: stream,
		out: newOutbox(ws.s.cfg.WatchBuffer),
		set: &watchSet{},
		ids: make(map[int64]*watcher),
	}
	s := ws.s
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return rpctypes.ErrGRPCStopped
	}
	s.work.Add(1)
	s.mu.Unlock()

	ctx, cancel := context.WithCancel(stream.Context())
	defer g.close()
	defer cancel()
	received := make(chan error, 1)
	go func() {
		// It ends when this method has returned, which is what makes Recv fail.
		defer s.work.Done()
		received <- g.receive(ctx)
	}()
	for {
		select {
		case o := <-g.out.c:
			if err := g.send(g.out.take(o)); err != nil {
				return err
			}
		case err := <-received:
			if errors.Is(err, context.Canceled) {
				return rpctypes.ErrGRPCWatchCanceled
			}
			return err
		case <-stream.Context().Done():
			if err := stream.Context().Err(); !errors.Is(err, context.Canceled) {
				return status.FromContextError(err).Err()
			}
			return rpctypes.ErrGRPCWatchCanceled
		case <-s.done:
			return rpctypes.ErrGRPCStopped
		}
	}
}

// close ends the watchers of the stream.
func (g *grpcWatch) close() {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	g.closed = true
	for _, w := range slices.Clone(g.set.list) {
		g.s.endWatcher(w)
	}
}

// receive handles the client's requests until there are no more.
func (g *grpcWatch) receive(ctx context.Context) error {
	for {
		req, err := g.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var resp *pb.WatchResponse
		switch u := req.RequestUnion.(type) {
		case *pb.WatchRequest_CreateRequest:
			if u.CreateRequest != nil {
				resp = g.create(u.CreateRequest)
			}
		case *pb.WatchRequest_CancelRequest:
			if u.CancelRequest != nil {
				resp = g.cancel(u.CancelRequest.WatchId)
			}
		case *pb.WatchRequest_ProgressRequest:
			if u.ProgressRequest != nil {
				g.progress()
			}
		}
		if resp == nil {
			continue
		}
		select {
		case g.out.c <- &outgoing{resp: resp}:
		case <-ctx.Done():
			return nil
		}
	}
}

// create starts a watcher, which announces itself, or returns the refusal.
func (g *grpcWatch) create(r *pb.WatchCreateRequest) *pb.WatchResponse {
	sp := watchedSpan(r.Key, r.RangeEnd)
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := func(reason error) *pb.WatchResponse {
		return &pb.WatchResponse{
			Header: header(s.keys.rev), WatchId: clientv3.InvalidWatchID,
			Created: true, Canceled: true, CancelReason: reason.Error(),
		}
	}
	unwatchable := sp.watchable(r.StartRevision)
	switch {
	case g.closed || s.closed:
		return nil
	case unwatchable != nil:
		return refuse(unwatchable)
	case r.WatchId != clientv3.AutoWatchID && g.ids[r.WatchId] != nil:
		return refuse(errDuplicateWatch)
	}
	id := r.WatchId
	if id == clientv3.AutoWatchID {
		for g.ids[g.nextID] != nil {
			g.nextID++
		}
		id = g.nextID
		g.nextID++
	}
	w := &watcher{
		span: sp, start: r.StartRevision, prevKV: r.PrevKv, announce: true,
		progress: r.ProgressNotify, sink: &streamSink{g: g, id: id, fragment: r.Fragment},
	}
	for _, f := range r.Filters {
		w.noPut = w.noPut || f == pb.WatchCreateRequest_NOPUT
		w.noDelete = w.noDelete || f == pb.WatchCreateRequest_NODELETE
	}
	g.ids[id] = w
	s.add(w, g.set)
	return nil
}

// cancel ends a watcher and returns the answer; nil if there is none.
func (g *grpcWatch) cancel(id int64) *pb.WatchResponse {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	w := g.ids[id]
	if w == nil {
		return nil
	}
	delete(g.ids, id)
	s.endWatcher(w)
	return &pb.WatchResponse{Header: header(s.keys.rev), WatchId: id, Canceled: true}
}

// progress sends the current revision, if all watchers of the stream are up to date.
func (g *grpcWatch) progress() {
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(g.set.list) == 0 || !s.allSynced(g.set) {
		return
	}
	resp := &pb.WatchResponse{Header: header(s.keys.rev), WatchId: clientv3.InvalidWatchID}
	select {
	case g.out.c <- &outgoing{resp: resp}:
	default:
	}
}
