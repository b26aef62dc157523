package cluster

import (
	"context"
	"fmt"
	"net"
	"sync"

	"snowglobe.test/internal/conns"
)

// socket dials one unix socket of a member. Closing it breaks its connections
// and refuses new ones, as a dead process or a network that is down does.
type socket struct {
	name, path string

	mu    sync.Mutex
	open  bool
	conns conns.Set
}

func (s *socket) dial(ctx context.Context) (net.Conn, error) {
	if !s.isOpen() {
		return nil, s.refusal()
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "unix", s.path)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open { // closed while dialing
		_ = raw.Close()
		return nil, s.refusal()
	}
	return s.conns.Add(raw), nil
}

func (s *socket) refusal() error { return fmt.Errorf("%s: connection refused", s.name) }

func (s *socket) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func (s *socket) setOpen(open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = open
	if !open {
		s.conns.CloseAll()
	}
}
