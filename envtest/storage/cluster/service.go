package cluster

import (
	"sync"

	"google.golang.org/grpc"
)

// service is what a running member offers to clients. Their gate is open from
// begin to end, so that no call of theirs is under way outside of that.
type service struct {
	gate *gate

	mu    sync.Mutex
	grpc  *grpc.Server // nil until the member serves
	ended bool
}

// begin is what etcd calls when it is about to serve.
func (s *service) begin(server *grpc.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.grpc = server
	s.gate.set(true)
}

// end breaks the connections of clients and waits until no call is under way.
func (s *service) end() {
	s.mu.Lock()
	s.ended = true
	server := s.grpc
	s.gate.set(false)
	s.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}
