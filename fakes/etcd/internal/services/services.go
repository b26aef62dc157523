package services

import (
	"net/http"
	"slices"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// Config says what the services are besides a store.
type Config struct {
	MaxRequestBytes      int
	WatchBuffer          int // responses of a watch stream that may be unread
	Name                 string
	PeerURLs, ClientURLs []string
	HTTP                 http.Handler // for paths that are not etcd's, may be nil
	ServerOptions        []grpc.ServerOption
}

// Server serves a store.
type Server struct {
	cfg      Config
	store    *keyspace.Store
	services []service // those that are answered both in process and over gRPC

	http func() http.Handler // made when it is first needed
}

// service is a gRPC service and its implementation.
type service struct {
	desc *grpc.ServiceDesc
	impl any
}

// New returns a server of store, which joins what it starts.
func New(store *keyspace.Store, cfg Config) *Server {
	member := &pb.Member{ID: keyspace.MemberID, Name: cfg.Name, PeerURLs: cfg.PeerURLs, ClientURLs: cfg.ClientURLs}
	s := &Server{cfg: cfg, store: store}
	s.services = []service{
		{&pb.KV_ServiceDesc, &kvService{Store: store, maxRequestBytes: cfg.MaxRequestBytes}},
		{&pb.Watch_ServiceDesc, &watchService{s: s}},
		{&pb.Lease_ServiceDesc, &leaseService{Store: store}},
		{&pb.Cluster_ServiceDesc, &clusterService{members: []*pb.Member{member}}},
		{only(pb.Maintenance_ServiceDesc, "Status", "Alarm", "Defragment"), &maintenanceService{store: store}},
		{only(pb.Auth_ServiceDesc, "AuthStatus", "Authenticate"), &authService{store: store}},
	}
	s.http = sync.OnceValue(s.newHTTPHandler)
	return s
}

// only describes a service of which some methods are answered.
func only(service grpc.ServiceDesc, methods ...string) *grpc.ServiceDesc {
	service.Methods = slices.DeleteFunc(slices.Clone(service.Methods), func(m grpc.MethodDesc) bool {
		return !slices.Contains(methods, m.MethodName)
	})
	service.Streams = nil
	return &service
}

// notAnswered refuses a method of no service: one of etcd's that needs what this etcd lacks,
// such as users or a file on a disk, or one that etcd has not either.
func notAnswered(method string) error {
	return status.Errorf(codes.Unimplemented, "the in-memory etcd does not answer %s; use a real etcd for it", method)
}

// refuse is notAnswered for gRPC.
func refuse(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	return notAnswered(method)
}
