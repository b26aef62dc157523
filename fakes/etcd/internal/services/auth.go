package services

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// authService answers what clients ask of an etcd on which authentication is disabled.
type authService struct {
	store *keyspace.Store
	pb.UnimplementedAuthServer
}

func (a *authService) AuthStatus(context.Context, *pb.AuthStatusRequest) (*pb.AuthStatusResponse, error) {
	stats, err := a.store.Stats()
	return &pb.AuthStatusResponse{Header: stats.Header, AuthRevision: 1}, err
}

// Authenticate fails with the error after which a client that has a user goes on without one.
func (a *authService) Authenticate(context.Context, *pb.AuthenticateRequest) (*pb.AuthenticateResponse, error) {
	return nil, rpctypes.ErrGRPCAuthNotEnabled
}
