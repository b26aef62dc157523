package services

import (
	"errors"
	"io"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// leaseService answers the Lease service.
type leaseService struct {
	*keyspace.Store
	pb.UnsafeLeaseServer
}

func (l *leaseService) LeaseKeepAlive(
	stream grpc.BidiStreamingServer[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse],
) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		resp, err := l.RenewLease(req.ID)
		if err != nil {
			return err
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
}
