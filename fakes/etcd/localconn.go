package etcd

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

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
	return notAnswered(method)
}

func assign(to, from any) error {
	proto.Merge(to.(proto.Message), from.(proto.Message))
	return nil
}

// NewStream fails: of streaming methods, only Maintenance.Snapshot comes here, and is not answered.
func (l *localConn) NewStream(_ context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, notAnswered(method)
}
