package etcd

import (
	"cmp"
	"context"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// service is a gRPC service and its implementation.
type service struct {
	desc *grpc.ServiceDesc
	impl any
}

// services are those that the server answers both in process and over gRPC.
func (s *Server) services() []service {
	return []service{
		{&pb.KV_ServiceDesc, &kvService{s: s}},
		{&pb.Watch_ServiceDesc, &watchService{s: s}},
		{&pb.Lease_ServiceDesc, &leaseService{s: s}},
		{&pb.Cluster_ServiceDesc, &clusterService{s: s}},
		{&pb.Maintenance_ServiceDesc, &maintenanceService{s: s}},
		{&pb.Auth_ServiceDesc, &authService{s: s}},
	}
}

// localConn is a grpc.ClientConnInterface that calls the server's services
// directly. It copies messages, so it is only for services that are rarely called.
type localConn struct{ c *client }

// Invoke calls a unary method.
func (l *localConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	if err := l.c.usable(ctx); err != nil {
		return err
	}
	for _, s := range l.c.s.services() {
		for _, m := range s.desc.Methods {
			if method != "/"+s.desc.ServiceName+"/"+m.MethodName {
				continue
			}
			resp, err := m.Handler(s.impl, ctx, func(in any) error { return assign(in, args) }, nil)
			if err != nil {
				return err
			}
			return assign(reply, resp)
		}
	}
	return status.Errorf(codes.Unimplemented, "unknown method %v", method)
}

func assign(to, from any) error {
	proto.Merge(to.(proto.Message), from.(proto.Message))
	return nil
}

// NewStream fails: the clients of streaming methods do without it.
func (l *localConn) NewStream(_ context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Errorf(codes.Unimplemented, "no stream of %v in process", method)
}

// localMaintenance is the Maintenance service for an in-process client.
type localMaintenance struct {
	pb.MaintenanceClient
	c *client
}

// Snapshot collects all parts before the first is received.
func (l *localMaintenance) Snapshot(ctx context.Context, r *pb.SnapshotRequest, _ ...grpc.CallOption) (grpc.ServerStreamingClient[pb.SnapshotResponse], error) {
	parts := &snapshotParts{ctx: ctx}
	if parts.err = l.c.usable(ctx); parts.err == nil {
		parts.err = (&maintenanceService{s: l.c.s}).Snapshot(r, snapshotSender{to: parts})
	}
	return parts, nil
}

// snapshotParts is the client's end of a snapshot.
type snapshotParts struct {
	grpc.ClientStream
	ctx  context.Context
	list []*pb.SnapshotResponse
	err  error // after the parts, nil: the end
}

func (p *snapshotParts) Context() context.Context { return p.ctx }

func (p *snapshotParts) Recv() (*pb.SnapshotResponse, error) {
	if err := p.ctx.Err(); err != nil {
		return nil, status.FromContextError(err).Err()
	}
	if len(p.list) == 0 {
		return nil, cmp.Or(p.err, io.EOF)
	}
	next := p.list[0]
	p.list = p.list[1:]
	return next, nil
}

// snapshotSender is the server's end.
type snapshotSender struct {
	grpc.ServerStream
	to *snapshotParts
}

func (s snapshotSender) Context() context.Context { return s.to.ctx }

func (s snapshotSender) Send(part *pb.SnapshotResponse) error {
	s.to.list = append(s.to.list, part)
	return nil
}
