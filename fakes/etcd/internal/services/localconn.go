package services

import (
	"context"
	"reflect"

	"google.golang.org/grpc"
)

// localConn is a grpc.ClientConnInterface that calls the services directly. It has their
// unary methods by full name.
type localConn map[string]func(ctx context.Context, decode func(any) error) (any, error)

// LocalConn returns a connection for clients in the process. Messages are handed over
// with all that they refer to, not copied.
func (s *Server) LocalConn() grpc.ClientConnInterface {
	l := make(localConn)
	for _, service := range s.services {
		for _, m := range service.desc.Methods {
			method := "/" + service.desc.ServiceName + "/" + m.MethodName
			l[method] = func(ctx context.Context, decode func(any) error) (any, error) {
				return m.Handler(service.impl, ctx, decode, nil)
			}
		}
	}
	return l
}

// Invoke calls a unary method.
func (l localConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	call, ok := l[method]
	if !ok {
		return notAnswered(method)
	}
	resp, err := call(ctx, func(in any) error { return assign(in, args) })
	if err != nil {
		return err
	}
	return assign(reply, resp)
}

// assign copies the message that from points at, shallowly, to where to points.
func assign(to, from any) error {
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem())
	return nil
}

// NewStream fails: of streaming methods, only Maintenance.Snapshot comes here, and is not answered.
func (l localConn) NewStream(
	_ context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return nil, notAnswered(method)
}
