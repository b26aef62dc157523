package services

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

	"snowglobe.test/fakes/etcd/internal/keyspace"
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
	s        *Server
	stream   grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchResponse]
	out      *outbox
	watchers *keyspace.Stream

	// The rest belongs to receive.
	ids    map[int64]*keyspace.Watcher
	nextID int64
}

// Watch serves a stream until the client or the server ends it.
func (ws *watchService) Watch(stream grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchResponse]) error {
	store := ws.s.store
	g := &grpcWatch{
		s: ws.s, stream: stream,
		out:      newOutbox(ws.s.cfg.WatchBuffer),
		watchers: store.NewStream(),
		ids:      make(map[int64]*keyspace.Watcher),
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer g.watchers.Close()
	defer cancel()
	received := make(chan error, 1)
	// It ends when this method has returned, which is what makes Recv fail.
	if !store.Go(func() { received <- g.receive(ctx) }) {
		return rpctypes.ErrGRPCStopped
	}
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
		case <-store.Closing().Done():
			return rpctypes.ErrGRPCStopped
		}
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
	w := keyspace.Watch{
		Key: r.Key, RangeEnd: r.RangeEnd, Start: r.StartRevision, PrevKV: r.PrevKv,
		NoPut:    slices.Contains(r.Filters, pb.WatchCreateRequest_NOPUT),
		NoDelete: slices.Contains(r.Filters, pb.WatchCreateRequest_NODELETE),
		Announce: true, Progress: r.ProgressNotify, Ended: func() {},
	}
	id := r.WatchId
	err := w.Check()
	if err == nil && id != clientv3.AutoWatchID && g.ids[id] != nil {
		err = errDuplicateWatch
	}
	if err != nil {
		return &pb.WatchResponse{
			Header: keyspace.Header(g.s.store.Revision()), WatchId: clientv3.InvalidWatchID,
			Created: true, Canceled: true, CancelReason: err.Error(),
		}
	}
	if id == clientv3.AutoWatchID {
		for g.ids[g.nextID] != nil {
			g.nextID++
		}
		id = g.nextID
		g.nextID++
	}
	w.Deliver = g.deliver(id, r.Fragment)
	g.ids[id] = g.watchers.Watch(w)
	return nil
}

// cancel ends a watcher and returns the answer; nil if there is none.
func (g *grpcWatch) cancel(id int64) *pb.WatchResponse {
	w := g.ids[id]
	if w == nil {
		return nil
	}
	delete(g.ids, id)
	w.Cancel()
	return &pb.WatchResponse{Header: keyspace.Header(g.s.store.Revision()), WatchId: id, Canceled: true}
}

// progress sends the current revision, if all watchers of the stream are up to date.
func (g *grpcWatch) progress() {
	g.watchers.Progress(func(r clientv3.WatchResponse, _ []*keyspace.Watcher) {
		keyspace.Offer(g.out.c, newOutgoing(clientv3.InvalidWatchID, false, r), nil)
	})
}
