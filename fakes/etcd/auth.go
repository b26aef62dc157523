package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// authService answers what clients ask of an etcd on which authentication is disabled.
type authService struct {
	s *Server
	pb.UnimplementedAuthServer
}

func (a *authService) AuthStatus(context.Context, *pb.AuthStatusRequest) (*pb.AuthStatusResponse, error) {
	return locked(a.s, func(h *pb.ResponseHeader) (*pb.AuthStatusResponse, error) {
		return &pb.AuthStatusResponse{Header: h, AuthRevision: 1}, nil
	})
}

// Authenticate fails with the error after which a client that has a user goes on without one.
func (a *authService) Authenticate(context.Context, *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	return nil, rpctypes.ErrGRPCAuthNotEnabled
}
