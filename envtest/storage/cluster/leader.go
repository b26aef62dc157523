package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

// Leader waits until a quorum of the members follows one leader and has answered it, and returns its
// index. It never returns a leader that was just stopped or cut off.
func (s *Store) Leader(ctx context.Context) (int, error) {
	for {
		leader, server, changes := s.currentLeader()
		if server != nil {
			// Members believe in a leader for a while when they don't hear from it: when one has just rejoined, what
			// is written to the leader of before may be lost with it.
			err := server.LinearizableReadNotify(ctx)
			if err == nil {
				return leader, nil
			}
			if ctx.Err() == nil && !errors.Is(err, etcderrors.ErrStopped) {
				continue
			}
		}
		if !waitAny(ctx, changes) {
			return 0, fmt.Errorf("wait for a leader of the etcd cluster, %s: %w", s.quorumState(), context.Cause(ctx))
		}
	}
}

// currentLeader returns the leader and its server, if a quorum follows one, and otherwise no server. One of the
// channels is closed when the answer may have changed.
func (s *Store) currentLeader() (leader int, server *etcdserver.EtcdServer, changes []<-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes = append(changes, s.changed.Next())
	followers := map[int]int{}
	for _, m := range s.members {
		if m.etcd == nil || m.cut {
			continue
		}
		// Get the channel before the leader, or a change in between is missed.
		changes = append(changes, m.etcd.Server.LeaderChangedNotify())
		if i, ok := s.index(m.etcd.Server.Lead()); ok {
			followers[i]++
		}
	}
	for i, n := range followers {
		m := s.members[i]
		if n >= s.quorum() && m.etcd != nil && !m.cut && m.etcd.Server.Leader() == m.id {
			return i, m.etcd.Server, changes
		}
	}
	return 0, nil, changes
}

func (s *Store) index(id uint64) (int, bool) {
	for i, m := range s.members {
		if id != 0 && uint64(m.id) == id { // 0 means no leader, or a member that has not started
			return i, true
		}
	}
	return 0, false
}

// waitAny waits until a channel is closed; it returns false if ctx ends first.
func waitAny(ctx context.Context, changes []<-chan struct{}) bool {
	cases := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())}}
	for _, c := range changes {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)})
	}
	chosen, _, _ := reflect.Select(cases)
	return chosen != 0
}

// quorumState says how many members can elect a leader, and how many it takes.
func (s *Store) quorumState() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d of %d members run and are not cut off; a quorum is %d", s.connected(), s.cfg.Members, s.quorum())
}

// handoverElections is how long a handover may take, in election timeouts.
const handoverElections = 5

// MoveLeader waits for a leader and makes it hand over to another member. It does
// nothing if that member already leads.
func (s *Store) MoveLeader(ctx context.Context, to int) error {
	return failed("move leader", s.moveLeader(ctx, to))
}

func (s *Store) moveLeader(ctx context.Context, to int) error {
	if err := s.eligible(to); err != nil {
		return err
	}
	from, err := s.Leader(ctx)
	if err != nil || from == to {
		return err
	}
	var server *embed.Etcd
	var lead, transferee types.ID
	err = s.with(from, func(old *member) error {
		server, lead, transferee = old.etcd, old.id, s.members[to].id
		if server == nil {
			return fmt.Errorf("%s was the leader and was stopped meanwhile", old.name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Raft gives a handover up after an election timeout, and does not say so.
	handover, cancel := context.WithTimeout(ctx, handoverElections*s.cfg.ElectionTimeout)
	defer cancel()
	if err := server.Server.MoveLeader(handover, uint64(lead), uint64(transferee)); err != nil {
		return fmt.Errorf("from member %d to member %d: %w", from, to, err)
	}
	if now, err := s.Leader(ctx); err != nil || now == to {
		return err
	}
	return fmt.Errorf("member %d was elected and lost the leadership again", to)
}

// LoseLeader implements storage.LeaderLoser by a handover to another member.
func (s *Store) LoseLeader(ctx context.Context) error {
	from, err := s.Leader(ctx)
	if err != nil {
		return fmt.Errorf("lose leader: %w", err)
	}
	for i := range s.cfg.Members {
		if i != from && s.eligible(i) == nil {
			return s.MoveLeader(ctx, i)
		}
	}
	return fmt.Errorf("lose leader: no other member can lead: %s", s.quorumState())
}

// eligible returns an error if a member can't become the leader.
func (s *Store) eligible(i int) error {
	return s.with(i, func(m *member) error {
		switch {
		case m.etcd == nil:
			return fmt.Errorf("%s is stopped; restart it first", m.name)
		case m.cut:
			return fmt.Errorf("%s is cut off; let it rejoin first", m.name)
		}
		return nil
	})
}
