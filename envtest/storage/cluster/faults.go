package cluster

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/server/v3/embed"
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

// failed wraps err, if there is one, with what has failed.
func failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// with calls use with member i, with mu held.
func (s *Store) with(i int, use func(*member) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping || len(s.members) < s.cfg.Members:
		return errors.New("the etcd cluster is not running; start it first")
	case i < 0 || i >= len(s.members):
		return fmt.Errorf("the etcd cluster has no member %d; its members are 0 to %d", i, len(s.members)-1)
	}
	return use(s.members[i])
}

// StopMember stops a member as if its process had been killed: its connections
// break, new ones are refused, and a leader does not hand over (MoveLeader does).
// Writes that others forwarded to a leader are lost with it: their clients get
// "etcdserver: request timed out" after five seconds and two election timeouts.
// What the member acknowledged is there after RestartMember. Stopping it again
// does nothing. Without an error, nothing of it runs any more on return.
func (s *Store) StopMember(ctx context.Context, i int) error {
	var killed kill
	err := s.with(i, func(m *member) error {
		killed = m.kill()
		return nil
	})
	if err == nil {
		err = killed.wait(ctx)
	}
	return failed("stop member", err)
}

// RestartMember starts a stopped member from its data and waits until it serves;
// a running member is an error. It does not wait if the member is cut off, or if the
// members that run and are not cut off are no quorum: then it serves as soon as it can.
func (s *Store) RestartMember(ctx context.Context, i int) error {
	return failed("restart member", s.restart(ctx, i))
}

func (s *Store) restart(ctx context.Context, i int) error {
	var killed kill
	err := s.with(i, func(m *member) error {
		killed = m.killed
		return nil
	})
	if err != nil {
		return err
	}
	if err := killed.wait(ctx); err != nil {
		return err
	}
	canServe := false
	err = s.with(i, func(m *member) error {
		if m.etcd != nil {
			return fmt.Errorf("%s is running; stop it first", m.name)
		}
		select {
		case <-m.killed.done:
		default:
			return fmt.Errorf("%s was restarted and stopped meanwhile", m.name)
		}
		err := s.startMember(ctx, m)
		canServe = !m.cut && s.connected() >= s.quorum()
		return err
	})
	if err != nil || !canServe {
		return err
	}
	return s.ready(ctx, i)
}

// ready waits until a running member serves.
func (s *Store) ready(ctx context.Context, i int) error {
	var server *embed.Etcd
	var name string
	err := s.with(i, func(m *member) error {
		server, name = m.etcd, m.name
		return nil
	})
	if err != nil {
		return err
	}
	stopped := fmt.Errorf("%s was stopped before it was ready", name)
	if server == nil {
		return stopped
	}
	select {
	case <-server.Server.ReadyNotify():
		return nil
	case <-server.Server.StopNotify():
		return stopped
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", name, context.Cause(ctx))
	}
}

// CutOff cuts a member off from all others, in both directions, as a network
// partition does; clients still reach it. A leader that is cut off steps down
// within an election timeout, and the others elect a new one if they are a
// quorum. Cutting a member off twice does nothing.
//
// Clients see this at a member that is cut off, and everywhere without a quorum:
//   - Writes and linearizable reads are not answered, and etcd's client retries
//     until its context ends. Those under way when the leader was lost may get
//     "etcdserver: request timed out" after five seconds and two election timeouts.
//   - Serializable reads return what the member has; watches get nothing new.
//   - What requires a leader (clientv3.WithRequireLeader, which the API server
//     sets on its watches) fails with "etcdserver: no leader" once the member
//     has noticed: calls after an election timeout, watches after three more.
//   - Lease keep-alives still succeed until the member notices, because they
//     reach the leader on a separate connection.
//
// A client of several members can't tell, and keeps sending this member a
// share of its calls. StopMember makes clients fail over at once.
func (s *Store) CutOff(i int) error { return failed("cut off", s.setCut(i, true)) }

// Rejoin ends CutOff. The member catches up and follows the others' leader. It does
// nothing for a member that is not cut off.
func (s *Store) Rejoin(i int) error { return failed("rejoin", s.setCut(i, false)) }

func (s *Store) setCut(i int, cut bool) error {
	return s.with(i, func(m *member) error {
		m.cut = cut
		s.applyCuts()
		s.changed.Tell()
		return nil
	})
}

// applyCuts enforces the cuts: both sides drop what they send and receive,
// and no client can connect to a member that is cut off. Called with mu held.
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
