package etcd

import (
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
		{only(pb.Maintenance_ServiceDesc, "Status", "Alarm", "Defragment"), &maintenanceService{s: s}},
		{only(pb.Auth_ServiceDesc, "AuthStatus", "Authenticate"), &authService{s: s}},
	}
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
