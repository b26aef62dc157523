// Package conns owns sets of open network connections that can all be closed at once.
// It never dials or listens.
package conns

import (
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
)

// Set holds connections from Add until they are closed. Its zero value is empty.
type Set struct {
	mu   sync.Mutex
	open map[*member]struct{}
}

// Add adds a connection to the set and returns it wrapped: closing the result removes
// it from the set. It may be closed more than once.
func (s *Set) Add(conn net.Conn) net.Conn {
	m := &member{conn, s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[*member]struct{}{}
	}
	s.open[m] = struct{}{}
	return m
}

// CloseAll closes all connections of the set.
func (s *Set) CloseAll() { s.CloseAllAs(func(net.Conn) {}) }

// CloseAllAs passes each connection, as given to Add, to prepare and closes it.
func (s *Set) CloseAllAs(prepare func(net.Conn)) {
	s.mu.Lock()
	open := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, m := range open {
		prepare(m.Conn)
		_ = m.Close()
	}
}

// Keep returns a listener with which all that l accepts comes into the set.
func (s *Set) Keep(l net.Listener) net.Listener { return &listener{l, s} }

type listener struct {
	net.Listener
	set *Set
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.set.Add(conn), nil
}

type member struct {
	net.Conn
	set *Set
}

// Close implements net.Conn.
func (m *member) Close() error {
	m.set.mu.Lock()
	delete(m.set.open, m)
	m.set.mu.Unlock()
	if err := m.Conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
