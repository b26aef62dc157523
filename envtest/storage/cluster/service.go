package cluster

import (
	"sync"

	"google.golang.org/grpc"
)

// service is what a running member offers to clients. Their socket is open only
// between begin and end, so that they have no call under way outside of that.
type service struct {
	socket *socket

	mu    sync.Mutex
	grpc  *grpc.Server // nil until the member serves
	ended bool
}

// begin is called by etcd when it is about to serve.
func (s *service) begin(server *grpc.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.grpc = server
	s.socket.setOpen(true)
}

// end breaks the clients' connections and waits until no call is under way.
func (s *service) end() {
	s.mu.Lock()
	s.ended = true
	server := s.grpc
	s.socket.setOpen(false)
	s.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}
