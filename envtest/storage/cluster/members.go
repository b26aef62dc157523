package cluster

import (
	"context"
	"errors"
	"fmt"
)

// Member is the state of one member.
type Member struct {
	Running bool // false after StopMember
	CutOff  bool // true after CutOff; it outlives a restart
}

// Members returns the state of every member, by index; none before Start.
func (s *Store) Members() []Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Member, len(s.members))
	for i, m := range s.members {
		all[i] = Member{Running: m.etcd != nil, CutOff: m.cut}
	}
	return all
}

// member returns a member with the mutex held.
func (s *Store) member(i int) (*member, error) {
	switch {
	case s.stopping || len(s.members) < s.cfg.Members:
		return nil, errors.New("the etcd cluster does not run; start it first")
	case i < 0 || i >= len(s.members):
		return nil, fmt.Errorf("the etcd cluster has no member %d; its members are 0 to %d", i, len(s.members)-1)
	}
	return s.members[i], nil
}

// StopMember ends a member as if its process had been killed: connections to it
// break, new ones are refused, and a leader does not hand over (MoveLeader does).
// A write that another member has passed on to a leader is lost with it: its
// client gets "etcdserver: request timed out", after five seconds and two
// election timeouts.
// What the member has acknowledged is there after RestartMember. To stop a
// stopped member does nothing. When StopMember returns without an error, nothing
// of the member runs.
func (s *Store) StopMember(ctx context.Context, i int) error {
	s.mu.Lock()
	m, err := s.member(i)
	if err != nil {
		s.mu.Unlock()
		return fmt.Errorf("stop member: %w", err)
	}
	m.kill()
	name, killed := m.name, m.killed
	s.mu.Unlock()
	if err := over(ctx, name, killed); err != nil {
		return fmt.Errorf("stop member: %w", err)
	}
	return nil
}

// RestartMember starts a stopped member from its data; to restart one that runs
// is an error. It waits until the member serves. If the members that run and are
// not cut off are too few for a quorum, or if this one is cut off, it does not
// wait: the member then serves as soon as it can.
func (s *Store) RestartMember(ctx context.Context, i int) error {
	if err := s.restart(ctx, i); err != nil {
		return fmt.Errorf("restart member: %w", err)
	}
	return nil
}

func (s *Store) restart(ctx context.Context, i int) error {
	s.mu.Lock()
	m, err := s.member(i)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	name, killed := m.name, m.killed
	s.mu.Unlock()
	if err := over(ctx, name, killed); err != nil {
		return err
	}
	if quorum, err := s.startAgain(i); err != nil || !quorum {
		return err
	}
	return s.ready(ctx, i)
}

// startAgain starts a member and reports whether it will be ready.
func (s *Store) startAgain(i int) (quorum bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.member(i)
	if err != nil {
		return false, err
	}
	if m.etcd != nil {
		return false, fmt.Errorf("%s runs; stop it first", m.name)
	}
	select {
	case <-m.killed:
	default:
		return false, fmt.Errorf("%s was restarted and stopped meanwhile", m.name)
	}
	if err := s.startMember(m); err != nil {
		return false, err
	}
	return !m.cut && s.connected() >= s.quorum(), nil
}

// ready waits until a running member serves.
func (s *Store) ready(ctx context.Context, i int) error {
	s.mu.Lock()
	m, err := s.member(i)
	if err == nil && m.etcd == nil {
		err = fmt.Errorf("%s was stopped before it was ready", m.name)
	}
	if err != nil {
		s.mu.Unlock()
		return err
	}
	server := m.etcd
	s.mu.Unlock()
	select {
	case <-server.Server.ReadyNotify():
		return nil
	case <-server.Server.StopNotify():
		return fmt.Errorf("%s was stopped before it was ready", m.name)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", m.name, context.Cause(ctx))
	}
}

// CutOff cuts a member off from all other members, in both directions, as a
// network partition does; its clients still reach it. A leader that is cut off
// steps down within an election timeout, and the others elect a new one if they
// are a quorum. To cut off a member twice does nothing.
//
// What a client sees at a member that is cut off, or at any while there is no
// quorum: writes and linearizable reads are not answered, and etcd's client asks
// again until its context ends; those under way when the leader was lost may get
// "etcdserver: request timed out", after five seconds and two election timeouts.
// Serializable reads show what the member has. A watch shows nothing new. What
// requires a leader (clientv3.WithRequireLeader, which the API server asks of its
// watches) fails with "etcdserver: no leader" once the member has noticed: calls
// after an election timeout, watches after three more.
// Leases are renewed by the leader, over a way of their own: a keep-alive still
// succeeds until the member misses its leader.
//
// A client of several members has no way to know, and asks this member every so
// often. StopMember makes clients fail over at once.
func (s *Store) CutOff(i int) error {
	if err := s.cut(i, true); err != nil {
		return fmt.Errorf("cut off: %w", err)
	}
	return nil
}

// Rejoin ends CutOff. The member catches up and follows the leader of the
// others. To rejoin a member that is not cut off does nothing.
func (s *Store) Rejoin(i int) error {
	if err := s.cut(i, false); err != nil {
		return fmt.Errorf("rejoin: %w", err)
	}
	return nil
}

func (s *Store) cut(i int, cut bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.member(i)
	if err != nil {
		return err
	}
	m.cut = cut
	s.partition()
	s.announce()
	return nil
}

// partition makes the running servers agree with who is cut off. Each side drops
// what it sends and what it gets, and nobody can connect to a member that is cut
// off.
func (s *Store) partition() {
	for _, m := range s.members {
		for _, other := range s.members {
			m.cutPeer(other, m.cut || other.cut)
		}
		m.peer.set(m.etcd != nil && !m.cut)
	}
}

func (s *Store) quorum() int { return s.cfg.Members/2 + 1 }

// connected counts the members that run and are not cut off.
func (s *Store) connected() int {
	n := 0
	for _, m := range s.members {
		if m.etcd != nil && !m.cut {
			n++
		}
	}
	return n
}
