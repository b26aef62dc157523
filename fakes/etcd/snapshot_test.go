package etcd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// contents returns every key with its value.
func contents(t testing.TB, c *kubernetes.Client, opts ...clientv3.OpOption) map[string]string {
	t.Helper()
	resp, err := c.KV.Get(context.Background(), "", append(opts, clientv3.WithFromKey())...)
	require.NoError(t, err)
	all := make(map[string]string)
	for _, kv := range resp.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all
}

// scribble writes at random.
func scribble(t testing.TB, c *kubernetes.Client, rnd *rand.Rand, times int) {
	t.Helper()
	for range times {
		key := fmt.Sprintf("k%02d", rnd.IntN(50))
		if rnd.IntN(4) == 0 {
			del(t, c, key)
		} else {
			put(t, c, key, fmt.Sprint(rnd.IntN(1000)))
		}
	}
}

func TestSnapshotStaysAsItIs(t *testing.T) {
	s := newServer(t, Config{})
	c := s.Client()
	rnd := rand.New(rand.NewPCG(1, 2))
	type taken struct {
		snapshot *Snapshot
		contents map[string]string
		older    map[int64]map[string]string
	}
	var list []taken
	for i := range 20 {
		scribble(t, c, rnd, 200)
		if i%5 == 4 {
			_, err := c.Compact(t.Context(), s.Revision()-50)
			require.NoError(t, err)
		}
		older := make(map[int64]map[string]string)
		for rev := s.Revision() - 40; rev <= s.Revision(); rev += 10 {
			older[rev] = contents(t, c, clientv3.WithRev(rev))
		}
		list = append(list, taken{s.Snapshot(), contents(t, c), older})
	}
	for _, tk := range list {
		fork, err := tk.snapshot.Fork(Config{})
		require.NoError(t, err)
		defer fork.Close()
		fc := fork.Client()
		assert.Equal(t, tk.snapshot.Revision(), fork.Revision(), "revision")
		assert.Empty(t, cmp.Diff(tk.contents, contents(t, fc)), "-then +fork")
		for rev, want := range tk.older {
			assert.Empty(t, cmp.Diff(want, contents(t, fc, clientv3.WithRev(rev))), "at %d: -then +fork", rev)
		}
	}
}

// TestForksAreIndependent writes to two forks of one snapshot and to its
// origin, and compares each with a store that did the same by itself.
func TestForksAreIndependent(t *testing.T) {
	begin := func() (*Server, *kubernetes.Client) {
		s := newServer(t, Config{})
		scribble(t, s.Client(), rand.New(rand.NewPCG(1, 1)), 700)
		return s, s.Client()
	}
	origin, c := begin()
	snapshot := origin.Snapshot()
	clients := []*kubernetes.Client{c}
	for range 2 {
		fork, err := snapshot.Fork(Config{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = fork.Close() })
		clients = append(clients, fork.Client())
	}
	var alone []*kubernetes.Client
	for i := range clients {
		_, c := begin()
		alone = append(alone, c)
		for _, c := range []*kubernetes.Client{clients[i], alone[i]} {
			scribble(t, c, rand.New(rand.NewPCG(7, uint64(i))), 700)
		}
	}
	all := func(c *kubernetes.Client) (list []string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		rev := put(t, c, "end", "")
		for ev := range eventsUntil(c.Watch(ctx, "", clientv3.WithFromKey(), clientv3.WithRev(2), clientv3.WithPrevKV()), rev) {
			list = append(list, ev)
		}
		return list
	}
	for i := range clients {
		assert.Empty(t, cmp.Diff(all(alone[i]), all(clients[i])), "history of %d: -alone +forked", i)
		assert.Empty(t, cmp.Diff(contents(t, alone[i]), contents(t, clients[i])), "contents of %d: -alone +forked", i)
	}
}

// eventsUntil yields the events of a watch up to a revision.
func eventsUntil(ch clientv3.WatchChan, rev int64) func(func(string) bool) {
	return func(yield func(string) bool) {
		for resp := range ch {
			for _, ev := range resp.Events {
				if !yield(briefEvent(ev)) || ev.Kv.ModRevision == rev {
					return
				}
			}
		}
	}
}

func TestForkKeepsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{})
		c := s.Client()
		l, _ := c.Grant(t.Context(), 100)
		put(t, c, "a", "1", clientv3.WithLease(l.ID))
		time.Sleep(40 * time.Second)
		snapshot := s.Snapshot()
		time.Sleep(time.Hour)
		fork, err := snapshot.Fork(Config{})
		require.NoError(t, err)
		defer fork.Close()
		fc := fork.Client()
		left, err := fc.TimeToLive(t.Context(), l.ID, clientv3.WithAttachedKeys())
		assert.False(t, err != nil || left.TTL != 60 || len(left.Keys) != 1, "got %v, %v", left, err)
		time.Sleep(61 * time.Second)
		assert.Empty(t, contents(t, fc), "still")
	})
}

func TestRewind(t *testing.T) {
	s := newServer(t, Config{})
	c := s.Client()
	put(t, c, "changed", "1")  // 2
	put(t, c, "kept", "1")     // 3
	put(t, c, "deleted", "1")  // 4
	put(t, c, "replaced", "1") // 5
	put(t, c, "back", "1")     // 6
	snapshot := s.Snapshot()
	want := contents(t, c)
	w := c.Watch(t.Context(), "", clientv3.WithFromKey(), clientv3.WithPrevKV())
	put(t, c, "changed", "2")
	put(t, c, "added", "2")
	put(t, c, "added later", "2")
	del(t, c, "deleted")
	del(t, c, "replaced")
	put(t, c, "replaced", "2")
	put(t, c, "back", "2")
	put(t, c, "back", "1")
	events(t, w, 8)

	changes, err := s.Rewind(snapshot, nil)
	require.NoError(t, err)
	require.Equal(t, s.Revision(), changes[len(changes)-1].Revision, "the last of %v", changes)
	assert.Empty(t, cmp.Diff(want, contents(t, c)), "-snapshot +rewound")
	got := events(t, w, len(changes))
	// What is newest goes first, what was oldest comes first, each at a
	// revision of its own; a key that began a new life ends it first.
	wantEvents := []string{
		"DELETE replaced=@15 was 2", "DELETE added later=@16 was 2", "DELETE added=@17 was 2",
		"PUT changed=1@18 was 2", "PUT deleted=1@19", "PUT replaced=1@20",
	}
	assert.Empty(t, cmp.Diff(wantEvents, got), "-want +got")

	// Again: what the rewind brought back is the same life, so it is only put.
	put(t, c, "replaced", "3")
	_, err = s.Rewind(snapshot, nil)
	assert.NoError(t, err)
	assert.Equal(t, int64(22), s.Revision())
	got = events(t, w, 2)
	assert.Equal(t, "PUT replaced=1@22 was 3", got[1], "got %v", got)
	// And with nothing to do, nothing is done.
	_, err = s.Rewind(snapshot, nil)
	assert.NoError(t, err)
	assert.Equal(t, int64(22), s.Revision())
}

func TestRewindExcept(t *testing.T) {
	s := newServer(t, Config{})
	c := s.Client()
	put(t, c, "changed", "1")
	put(t, c, "deleted", "1")
	snapshot := s.Snapshot()
	put(t, c, "changed", "2")
	put(t, c, "added", "2")
	put(t, c, "other", "2")
	del(t, c, "deleted")

	var asked []string
	changes, err := s.Rewind(snapshot, func(key string, have, want *mvccpb.KeyValue) bool {
		asked = append(asked, fmt.Sprintf("%s %q %q", key, have.GetValue(), want.GetValue()))
		return key != "other"
	})
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff([]Change{{Key: "other", Revision: 8, Deleted: true}}, changes), "-want +got")
	assert.Empty(t, cmp.Diff([]string{`added "2" ""`, `changed "2" "1"`, `deleted "" "1"`, `other "2" ""`}, asked), "-want +asked")
	assert.Empty(t, cmp.Diff(map[string]string{"added": "2", "changed": "2"}, contents(t, c)), "-want +got")
}

// TestRewindAnywhere rewinds at random: to snapshots of the store, to such of
// another, and across compactions.
func TestRewindAnywhere(t *testing.T) {
	s, other := newServer(t, Config{}), newServer(t, Config{})
	c := s.Client()
	rnd := rand.New(rand.NewPCG(3, 4))
	scribble(t, other.Client(), rnd, 300)
	snapshots := []*Snapshot{s.Snapshot(), other.Snapshot()}
	wants := []map[string]string{contents(t, c), contents(t, other.Client())}
	w := c.Watch(t.Context(), "", clientv3.WithFromKey())
	seen := make(map[string]string)
	for i := range 200 {
		scribble(t, c, rnd, rnd.IntN(60))
		if i%10 == 0 {
			snapshots = append(snapshots, s.Snapshot())
			wants = append(wants, contents(t, c))
		}
		if i%7 == 0 {
			_, _ = c.Compact(t.Context(), s.Revision()-int64(rnd.IntN(20)))
		}
		n := rnd.IntN(len(snapshots))
		changes, err := s.Rewind(snapshots[n], nil)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(wants[n], contents(t, c)), "rewind %d: -snapshot +rewound", i)
		if len(changes) > 0 {
			assert.Equal(t, s.Revision(), changes[len(changes)-1].Revision, "the last of %v", changes)
		}
		// A client that follows the events sees the same.
		for ev := range eventsUntil(w, put(t, c, "mark", fmt.Sprint(i))) {
			kind, rest, _ := strings.Cut(ev, " ")
			key, value, _ := strings.Cut(rest[:strings.LastIndex(rest, "@")], "=")
			if seen[key] = value; kind == "DELETE" {
				delete(seen, key)
			}
		}
		require.Empty(t, cmp.Diff(contents(t, c), seen), "rewind %d: -store +events", i)
	}
}

func TestRewindLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{})
		c := s.Client()
		old, _ := c.Grant(t.Context(), 100)
		put(t, c, "a", "1", clientv3.WithLease(old.ID))
		time.Sleep(20 * time.Second)
		snapshot := s.Snapshot()
		time.Sleep(90 * time.Second) // the lease expires
		young, _ := c.Grant(t.Context(), 100)
		put(t, c, "b", "1", clientv3.WithLease(young.ID))
		_, err := s.Rewind(snapshot, nil)
		require.NoError(t, err)
		left, err := c.TimeToLive(t.Context(), old.ID, clientv3.WithAttachedKeys())
		assert.False(t, err != nil || left.TTL != 80 || len(left.Keys) != 1, "got %v, %v", left, err)
		left, err = c.TimeToLive(t.Context(), young.ID, clientv3.WithAttachedKeys())
		assert.False(t, err != nil || left.TTL != 100 || len(left.Keys) != 0, "got %v, %v", left, err)
		time.Sleep(81 * time.Second)
		assert.Empty(t, contents(t, c), "still")
	})
}

func TestRewindClosed(t *testing.T) {
	s := newServer(t, Config{})
	snapshot := s.Snapshot()
	_ = s.Close()
	_, err := s.Rewind(snapshot, nil)
	assert.Error(t, err, "rewound a closed server")
	fork, err := snapshot.Fork(Config{})
	require.NoError(t, err, "a snapshot outlives its server")
	_ = fork.Close()
}
