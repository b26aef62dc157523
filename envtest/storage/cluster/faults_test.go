package cluster_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/cluster"
)

func TestOneStopped(t *testing.T) {
	t.Parallel()
	ctx, store := start(t, cluster.Config{})
	client := dial(t, store)
	leader, err := store.Leader(ctx)
	require.NoError(t, err)
	require.NoError(t, store.StopMember(ctx, leader))
	assert.Equal(t, cluster.Member{}, store.Members()[leader])
	successor, err := store.Leader(ctx)
	require.NoError(t, err)
	assert.NotEqual(t, leader, successor)
	put(ctx, t, client, "while stopped")

	_, err = dialMember(t, store, leader).Put(within(t, ctx, 300*time.Millisecond), "key", "")
	require.Error(t, err, "nothing listens at a stopped member")

	require.NoError(t, store.RestartMember(ctx, leader))
	assert.Equal(t, cluster.Member{Running: true}, store.Members()[leader])
	assert.EqualValues(t, 1, count(ctx, t, dialMember(t, store, leader), "while stopped"))
}

// requireNoAnswer checks that a call ran into its deadline. The member knows the
// deadline too, and may report it first.
func requireNoAnswer(t *testing.T, err error) {
	t.Helper()
	for _, late := range []error{rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost} {
		if errors.Is(err, late) {
			return
		}
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestQuorumLost(t *testing.T) {
	t.Parallel()
	ctx, store := start(t, cluster.Config{})
	client := dial(t, store)
	put(ctx, t, client, "before")
	last := dialMember(t, store, 2)
	require.EqualValues(t, 1, count(ctx, t, last, "before"), "the last member must have what the others agreed on")
	watch := last.Watch(clientv3.WithRequireLeader(ctx), "key", clientv3.WithCreatedNotify())
	require.True(t, (<-watch).Created)
	require.NoError(t, store.StopMember(ctx, 0))
	require.NoError(t, store.StopMember(ctx, 1))
	for resp := range watch {
		require.ErrorIs(t, resp.Err(), rpctypes.ErrNoLeader, "a watch that requires a leader ends")
	}

	_, err := client.Put(within(t, ctx, 300*time.Millisecond), "during", "")
	requireNoAnswer(t, err)
	_, err = client.Get(within(t, ctx, 300*time.Millisecond), "before")
	requireNoAnswer(t, err)
	_, err = client.Put(clientv3.WithRequireLeader(ctx), "during", "")
	require.ErrorIs(t, err, rpctypes.ErrNoLeader, "a call that requires a leader fails at once")
	assert.EqualValues(t, 1, count(ctx, t, client, "before", clientv3.WithSerializable()), "a serializable read returns what the member has")
	_, err = store.Leader(within(t, ctx, 300*time.Millisecond))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "1 of 3 members run and are not cut off; a quorum is 2")

	require.NoError(t, store.RestartMember(ctx, 0))
	_, err = store.Leader(ctx)
	require.NoError(t, err)
	put(ctx, t, client, "after")
	assert.EqualValues(t, 1, count(ctx, t, client, "before"))
}

func TestQuorumOfFive(t *testing.T) {
	t.Parallel()
	ctx, store := start(t, cluster.Config{Members: 5})
	client := dial(t, store)
	require.NoError(t, store.StopMember(ctx, 0))
	require.NoError(t, store.CutOff(1))
	leader, err := store.Leader(ctx)
	require.NoError(t, err, "three of five are a quorum")
	put(ctx, t, dialMember(t, store, leader), "key")
	require.NoError(t, store.StopMember(ctx, leader))
	_, err = store.Leader(within(t, ctx, 300*time.Millisecond))
	require.ErrorContains(t, err, "2 of 5 members run and are not cut off; a quorum is 3", "two of five are not a quorum")

	require.NoError(t, store.Rejoin(1))
	_, err = store.Leader(ctx)
	require.NoError(t, err)
	assert.EqualValues(t, 1, count(ctx, t, client, "key"))
}

// TestAllStopped restarts a cluster from its files alone: no member can be ready
// before a quorum runs, and the client recovers by itself.
func TestAllStopped(t *testing.T) {
	t.Parallel()
	ctx, store := start(t, cluster.Config{})
	client := dial(t, store)
	revision := put(ctx, t, client, "before")
	for i := range 3 {
		require.NoError(t, store.StopMember(ctx, i))
	}
	for i := range 3 {
		require.NoError(t, store.RestartMember(ctx, i))
	}
	_, err := store.Leader(ctx)
	require.NoError(t, err)
	assert.EqualValues(t, 1, count(ctx, t, client, "before"))
	assert.Equal(t, revision+1, put(ctx, t, client, "after"))
}

func TestCutOffLeader(t *testing.T) {
	t.Parallel()
	ctx, store := start(t, cluster.Config{})
	client := dial(t, store)
	put(ctx, t, client, "before")
	leader, err := store.Leader(ctx)
	require.NoError(t, err)
	atLeader := dialMember(t, store, leader)
	watch := atLeader.Watch(clientv3.WithRequireLeader(ctx), "key", clientv3.WithCreatedNotify())
	require.True(t, (<-watch).Created)

	require.NoError(t, store.CutOff(leader))
	assert.Equal(t, cluster.Member{Running: true, CutOff: true}, store.Members()[leader])
	successor, err := store.Leader(ctx)
	require.NoError(t, err)
	require.NotEqual(t, leader, successor)
	put(ctx, t, dialMember(t, store, successor), "during")

	for resp := range watch {
		require.ErrorIs(t, resp.Err(), rpctypes.ErrNoLeader, "a watch that requires a leader ends")
	}
	_, err = atLeader.Put(clientv3.WithRequireLeader(ctx), "key", "")
	require.ErrorIs(t, err, rpctypes.ErrNoLeader)
	assert.Zero(t, count(ctx, t, atLeader, "during", clientv3.WithSerializable()), "the cut is in both directions")
	// Clients of the whole cluster fail over: at most one of three calls in a row
	// reaches the member that is cut off.
	failed := 0
	for range 3 {
		if _, err := client.Put(clientv3.WithRequireLeader(ctx), "key", ""); err != nil {
			require.ErrorIs(t, err, rpctypes.ErrNoLeader)
			failed++
		}
	}
	assert.LessOrEqual(t, failed, 1)

	require.NoError(t, store.Rejoin(leader))
	assert.EqualValues(t, 1, count(ctx, t, atLeader, "during"), "a linearizable read waits until it has caught up")
	now, err := store.Leader(ctx)
	require.NoError(t, err)
	assert.Equal(t, successor, now, "a member that rejoins does not disturb the leader")
}

// TestCutOffFollower checks both directions from the other side: the follower
// neither sees a write nor counts for the quorum.
func TestCutOffFollower(t *testing.T) {
	t.Parallel()
	ctx, store := start(t, cluster.Config{})
	leader, err := store.Leader(ctx)
	require.NoError(t, err)
	follower := (leader + 1) % 3
	client, atFollower := dialMember(t, store, leader), dialMember(t, store, follower)
	put(ctx, t, client, "before")
	require.EqualValues(t, 1, count(ctx, t, atFollower, "before"))
	require.NoError(t, store.CutOff(follower))
	require.NoError(t, store.StopMember(ctx, 3-leader-follower))

	_, err = client.Put(within(t, ctx, 300*time.Millisecond), "no quorum", "")
	requireNoAnswer(t, err)
	assert.Zero(t, count(ctx, t, atFollower, "no quorum", clientv3.WithSerializable()))
	require.NoError(t, store.Rejoin(follower))
	_, err = store.Leader(ctx)
	require.NoError(t, err)
	put(ctx, t, client, "after")
	assert.EqualValues(t, 1, count(ctx, t, atFollower, "after"))
}

// TestRestartCutOff restarts members on both sides of a cut: the cut stays.
func TestRestartCutOff(t *testing.T) {
	t.Parallel()
	ctx, store := start(t, cluster.Config{})
	require.NoError(t, store.CutOff(0))
	leader, err := store.Leader(ctx)
	require.NoError(t, err)
	require.NoError(t, store.StopMember(ctx, 0))
	require.NoError(t, store.RestartMember(ctx, 0), "it must not wait for a member that is cut off")
	require.NoError(t, store.StopMember(ctx, leader))
	require.NoError(t, store.RestartMember(ctx, leader))
	leader, err = store.Leader(ctx)
	require.NoError(t, err)
	require.NotZero(t, leader)
	put(ctx, t, dialMember(t, store, leader), "during")
	_, err = dialMember(t, store, 0).Get(within(t, ctx, 300*time.Millisecond), "during")
	require.Error(t, err)
	require.NoError(t, store.Rejoin(0))
	assert.EqualValues(t, 1, count(ctx, t, dialMember(t, store, 0), "during"))
}

func TestCutOffTwoOfFive(t *testing.T) {
	t.Parallel()
	ctx, store := start(t, cluster.Config{Members: 5})
	require.NoError(t, store.CutOff(1))
	require.NoError(t, store.CutOff(3))
	leader, err := store.Leader(ctx)
	require.NoError(t, err)
	put(ctx, t, dialMember(t, store, leader), "during")
	require.NoError(t, store.Rejoin(1))
	assert.EqualValues(t, 1, count(ctx, t, dialMember(t, store, 1), "during"))
	assert.Zero(t, count(ctx, t, dialMember(t, store, 3), "during", clientv3.WithSerializable()), "the other one stays cut off")
	require.NoError(t, store.Rejoin(3))
	assert.EqualValues(t, 1, count(ctx, t, dialMember(t, store, 3), "during"))
}

func TestMoveLeader(t *testing.T) {
	t.Parallel()
	ctx, store := start(t, cluster.Config{})
	for _, to := range []int{0, 1, 2, 2} {
		require.NoError(t, store.MoveLeader(ctx, to))
		leader, err := store.Leader(ctx)
		require.NoError(t, err)
		assert.Equal(t, to, leader)
	}
	put(ctx, t, dial(t, store), "after")

	require.NoError(t, store.CutOff(0))
	require.ErrorContains(t, store.MoveLeader(ctx, 0), "cut off")
	require.NoError(t, store.StopMember(ctx, 0))
	require.ErrorContains(t, store.MoveLeader(ctx, 0), "stopped")
}

func TestLoseLeader(t *testing.T) {
	t.Parallel()
	ctx, store := start(t, cluster.Config{})
	before, err := store.Leader(ctx)
	require.NoError(t, err)
	require.NoError(t, store.CutOff((before+1)%3))
	var loser storage.LeaderLoser = store
	require.NoError(t, loser.LoseLeader(ctx))
	after, err := store.Leader(ctx)
	require.NoError(t, err)
	assert.Equal(t, (before+2)%3, after, "no other member can lead")
	put(ctx, t, dialMember(t, store, after), "after")
}

func TestBadMembers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	stopped, err := cluster.New(cluster.Config{})
	require.NoError(t, err)
	_, started := start(t, cluster.Config{})
	for want, store := range map[string]*cluster.Store{"start it first": stopped, "members are 0 to 2": started} {
		for _, i := range []int{-1, 3} {
			require.ErrorContains(t, store.StopMember(ctx, i), want)
			require.ErrorContains(t, store.RestartMember(ctx, i), want)
			require.ErrorContains(t, store.CutOff(i), want)
			require.ErrorContains(t, store.Rejoin(i), want)
			require.ErrorContains(t, store.MoveLeader(ctx, i), want)
		}
	}
	require.ErrorContains(t, started.RestartMember(ctx, 0), "is running; stop it first")
}

// TestStopMemberCancelled cancels the wait: the member is stopped all the same.
func TestStopMemberCancelled(t *testing.T) {
	t.Parallel()
	ctx, store := start(t, cluster.Config{})
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := store.StopMember(ended, 0); err != nil {
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "still stopping")
		require.ErrorContains(t, err, "what is left")
	}
	require.NoError(t, store.StopMember(ctx, 0), "a second call waits for the rest")
	require.NoError(t, store.RestartMember(ctx, 0))
}

// within returns a context that ends early, for what must not succeed.
func within(t *testing.T, ctx context.Context, timeout time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	t.Cleanup(cancel)
	return ctx
}

// TestStopMemberWithCallsUnderWay stops and restarts a member under constant calls. A
// call that used its closed database would end the process.
func TestStopMemberWithCallsUnderWay(t *testing.T) {
	t.Parallel()
	ctx, store := start(t, cluster.Config{})
	calling, stop := context.WithCancel(ctx)
	var callers sync.WaitGroup
	for range 64 {
		client := dialMember(t, store, 0)
		endpoint := store.Endpoints().URLs[0]
		callers.Go(func() {
			for calling.Err() == nil {
				attempt, cancel := context.WithTimeout(calling, time.Second)
				_, _ = client.Status(attempt, endpoint) // fails while the member is stopped
				cancel()
			}
		})
	}
	for range 20 {
		require.NoError(t, store.StopMember(ctx, 0))
		require.NoError(t, store.RestartMember(ctx, 0))
	}
	stop()
	callers.Wait()
	put(ctx, t, dialMember(t, store, 0), "after")
}
