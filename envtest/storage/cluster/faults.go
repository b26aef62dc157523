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

// Members returns the state of every member by index, nothing before Start.
func (s *Store) Members() []Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Member, len(s.members))
	for i, m := range s.members {
		all[i] = Member{Running: m.etcd != nil, CutOff: m.cut}
	}
	return all
}

// member returns a member. Called with mu held.
func (s *Store) member(i int) (*member, error) {
	switch {
	case s.stopping || len(s.members) < s.cfg.Members:
		return nil, errors.New("the etcd cluster is not running; start it first")
	case i < 0 || i >= len(s.members):
		return nil, fmt.Errorf("the etcd cluster has no member %d; its members are 0 to %d", i, len(s.members)-1)
	}
	return s.members[i], nil
}

// StopMember stops a member as if its process had been killed: its connections
// break, new ones are refused, and a leader does not hand over (MoveLeader does).
// Writes that other members have forwarded to a leader are lost with it: their
// clients get "etcdserver: request timed out" after five seconds and two election
// timeouts. What the member has acknowledged is there after RestartMember. Stopping
// a stopped member does nothing. When StopMember returns without an error, nothing
// of the member runs any more.
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
	if err := awaitKilled(ctx, name, killed); err != nil {
		return fmt.Errorf("stop member: %w", err)
	}
	return nil
}

// RestartMember starts a stopped member from its data and waits until it serves; a
// running member is an error. It does not wait if this member is cut off, or if too
// few members for a quorum run and are not cut off: the member then serves as soon
// as it can.
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
	if err := awaitKilled(ctx, name, killed); err != nil {
		return err
	}
	if quorum, err := s.startAgain(i); err != nil || !quorum {
		return err
	}
	return s.ready(ctx, i)
}

// startAgain starts a member and reports whether it can become ready now.
func (s *Store) startAgain(i int) (quorum bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.member(i)
	if err != nil {
		return false, err
	}
	if m.etcd != nil {
		return false, fmt.Errorf("%s is running; stop it first", m.name)
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

// CutOff cuts a member off from all other members, in both directions, as a network
// partition does; clients still reach it. A leader that is cut off steps down within
// an election timeout, and the others elect a new one if they are a quorum. Cutting
// off a member twice does nothing.
//
// This is what clients see at a member that is cut off, and at every member while
// there is no quorum:
//   - Writes and linearizable reads are not answered, and etcd's client retries
//     until its context ends. Those under way when the leader was lost may get
//     "etcdserver: request timed out" after five seconds and two election timeouts.
//   - Serializable reads return what the member has.
//   - Watches get nothing new.
//   - What requires a leader (clientv3.WithRequireLeader, which the API server sets
//     on its watches) fails with "etcdserver: no leader" once the member has noticed:
//     calls after an election timeout, watches after three more.
//   - Lease keep-alives still succeed until the member notices, because they reach
//     the leader on a separate connection.
//
// A client of several members can't tell, and keeps sending this member a share of
// its calls. StopMember makes clients fail over at once.
func (s *Store) CutOff(i int) error {
	if err := s.setCut(i, true); err != nil {
		return fmt.Errorf("cut off: %w", err)
	}
	return nil
}

// Rejoin ends CutOff. The member catches up and follows the others' leader. It does
// nothing for a member that is not cut off.
func (s *Store) Rejoin(i int) error {
	if err := s.setCut(i, false); err != nil {
		return fmt.Errorf("rejoin: %w", err)
	}
	return nil
}

func (s *Store) setCut(i int, cut bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.member(i)
	if err != nil {
		return err
	}
	m.cut = cut
	s.applyCuts()
	s.notifyChanged()
	return nil
}

// applyCuts makes the running servers match which members are cut off: both sides
// drop what they send and receive, and no member can connect to one that is cut off.
// Called with mu held.
func (s *Store) applyCuts() {
	for _, m := range s.members {
		for _, other := range s.members {
			m.cutPeer(other, m.cut || other.cut)
		}
		m.peer.setOpen(m.etcd != nil && !m.cut)
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
