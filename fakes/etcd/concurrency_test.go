package etcd

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3election/v3electionpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
	"google.golang.org/grpc/status"
)

// TestElectionAndLock compares what the Election and Lock services of an
// embedded etcd and of this one answer, but for the ids of leases.
func TestElectionAndLock(t *testing.T) {
	want, got := electAndLock(t, startReal(t)), electAndLock(t, dial(t, newServer(t, Config{})).Client)
	assert.Empty(t, cmp.Diff(want, got), "-embedded +this")
	assert.Contains(t, want[0], "ann", "it answered %q", want)
}

// electAndLock holds an election, takes a lock, and returns all that was said.
func electAndLock(t *testing.T, c *clientv3.Client) (said []string) {
	ctx := t.Context()
	elections, locks := v3electionpb.NewElectionClient(c.ActiveConnection()), v3lockpb.NewLockClient(c.ActiveConnection())
	lease, err := c.Grant(ctx, 60)
	require.NoError(t, err)
	say := func(what string, err error, values ...any) {
		text := strings.ReplaceAll(fmt.Sprint(values...), fmt.Sprintf("%x", int64(lease.ID)), "LEASE")
		said = append(said, fmt.Sprintf("%s: %s, %v", what, text, status.Convert(err)))
	}
	name := []byte("boss")
	won, err := elections.Campaign(ctx, &v3electionpb.CampaignRequest{Name: name, Lease: int64(lease.ID), Value: []byte("ann")})
	say("campaign", err, string(won.GetLeader().GetKey()), " ", won.GetLeader().GetRev(), won.GetHeader().GetRevision(), " ann")
	leader, err := elections.Leader(ctx, &v3electionpb.LeaderRequest{Name: name})
	say("leader", err, string(leader.GetKv().GetValue()), leader.GetHeader().GetRevision())
	observing, stop := context.WithCancel(ctx)
	defer stop()
	seen, err := elections.Observe(observing, &v3electionpb.LeaderRequest{Name: name})
	require.NoError(t, err)
	next := func() {
		resp, err := seen.Recv()
		say("observe", err, string(resp.GetKv().GetValue()))
	}
	next()
	proclaimed, err := elections.Proclaim(ctx, &v3electionpb.ProclaimRequest{Leader: won.GetLeader(), Value: []byte("bob")})
	say("proclaim", err, proclaimed.GetHeader().GetRevision())
	next()
	// The client inside an embedded etcd leaves a stream behind if it is
	// cancelled while it opens a watch, and a resignation has it open one.
	stop()
	next()
	resigned, err := elections.Resign(ctx, &v3electionpb.ResignRequest{Leader: won.GetLeader()})
	say("resign", err, resigned.GetHeader().GetRevision())
	_, err = elections.Leader(ctx, &v3electionpb.LeaderRequest{Name: name})
	say("no leader", err)
	_, err = elections.Proclaim(ctx, &v3electionpb.ProclaimRequest{Value: []byte("bob")})
	say("proclaim without a leader", err)
	_, err = elections.Campaign(ctx, &v3electionpb.CampaignRequest{Name: name, Lease: 42, Value: []byte("eve")})
	say("campaign without a lease", err)

	locked, err := locks.Lock(ctx, &v3lockpb.LockRequest{Name: []byte("l"), Lease: int64(lease.ID)})
	say("lock", err, string(locked.GetKey()), locked.GetHeader().GetRevision())
	waiting, cancel := context.WithCancel(ctx)
	cancel()
	_, err = locks.Lock(waiting, &v3lockpb.LockRequest{Name: []byte("l")})
	say("give up waiting", err)
	unlocked, err := locks.Unlock(ctx, &v3lockpb.UnlockRequest{Key: locked.GetKey()})
	say("unlock", err, unlocked.GetHeader().GetRevision())
	return said
}

// TestCloseEndsElections closes a server while clients wait to become leader,
// to get a lock, and for news of an election. The bubble does not end if
// anything is left.
func TestCloseEndsElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{})
		conn := dial(t, s).ActiveConnection()
		elections, locks := v3electionpb.NewElectionClient(conn), v3lockpb.NewLockClient(conn)
		campaign := &v3electionpb.CampaignRequest{Name: []byte("boss"), Value: []byte("ann")}
		_, err := elections.Campaign(t.Context(), campaign)
		require.NoError(t, err)
		_, err = locks.Lock(t.Context(), &v3lockpb.LockRequest{Name: []byte("l")})
		require.NoError(t, err)
		ended := make(chan error, 3)
		go func() {
			_, err := elections.Campaign(t.Context(), campaign)
			ended <- err
		}()
		go func() {
			_, err := locks.Lock(t.Context(), &v3lockpb.LockRequest{Name: []byte("l")})
			ended <- err
		}()
		go func() {
			ended <- observeAll(t.Context(), elections)
		}()
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatal(<-ended)
		}
		closeAtOnce(t, s)
		for range cap(ended) {
			assert.Error(t, <-ended, "it succeeded")
		}
	})
}

func observeAll(ctx context.Context, elections v3electionpb.ElectionClient) error {
	stream, err := elections.Observe(ctx, &v3electionpb.LeaderRequest{Name: []byte("boss")})
	for err == nil {
		_, err = stream.Recv()
	}
	return err
}
