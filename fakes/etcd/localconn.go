package etcd

import (
	"context"
	"io"
	"strings"

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

// find returns the service a method belongs to and the method's bare name.
func (l *localConn) find(method string) (service, string, error) {
	name, method, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	for _, s := range l.c.s.services() {
		if s.desc.ServiceName == name {
			return s, method, nil
		}
	}
	return service{}, "", status.Errorf(codes.Unimplemented, "unknown service %v", name)
}

// Invoke calls a unary method.
func (l *localConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	if err := l.c.usable(ctx); err != nil {
		return err
	}
	s, name, err := l.find(method)
	if err != nil {
		return err
	}
	for _, m := range s.desc.Methods {
		if m.MethodName != name {
			continue
		}
		resp, err := m.Handler(s.impl, ctx, func(in any) error { return assign(in, args) }, nil)
		if err != nil {
			return err
		}
		return assign(reply, resp)
	}
	return status.Errorf(codes.Unimplemented, "unknown method %v", method)
}

func assign(to, from any) error {
	proto.Merge(to.(proto.Message), from.(proto.Message))
	return nil
}

// NewStream calls a method that takes one message and streams the answers. All
// of them are collected before the first is received.
func (l *localConn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	s, name, err := l.find(method)
	if err != nil {
		return nil, err
	}
	for _, m := range s.desc.Streams {
		if m.StreamName == name && m.ServerStreams && !m.ClientStreams {
			return &localStream{conn: l, ctx: ctx, impl: s.impl, handler: m.Handler}, nil
		}
	}
	return nil, status.Errorf(codes.Unimplemented, "no stream of %v in process", method)
}

// localStream is the client's end of a streaming call.
type localStream struct {
	grpc.ClientStream
	conn    *localConn
	ctx     context.Context
	impl    any
	handler grpc.StreamHandler

	request any
	answers []any
	err     error
}

func (l *localStream) Context() context.Context { return l.ctx }

// SendMsg takes the request.
func (l *localStream) SendMsg(m any) error {
	l.request = m
	return nil
}

// CloseSend runs the handler.
func (l *localStream) CloseSend() error {
	if l.err = l.conn.c.usable(l.ctx); l.err == nil {
		l.err = l.handler(l.impl, &localServerStream{l: l})
	}
	return nil
}

// RecvMsg returns the next answer.
func (l *localStream) RecvMsg(m any) error {
	if err := l.ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	if len(l.answers) == 0 {
		if l.err != nil {
			return l.err
		}
		return io.EOF
	}
	next := l.answers[0]
	l.answers = l.answers[1:]
	return assign(m, next)
}

// localServerStream is the handler's end.
type localServerStream struct {
	grpc.ServerStream
	l *localStream
}

func (s *localServerStream) Context() context.Context { return s.l.ctx }

func (s *localServerStream) RecvMsg(m any) error { return assign(m, s.l.request) }

func (s *localServerStream) SendMsg(m any) error {
	s.l.answers = append(s.l.answers, m)
	return nil
}
