package contract

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/envtest/storage"
)

// runSnapshots runs the contract of storage.Snapshotter.
func runSnapshots(t *testing.T, store storage.Snapshotter) {
	open := each(func(*testing.T) storage.Backend { return store }, byClient)
	client := open(t).Client
	t.Run("anywhere", func(t *testing.T) { restoreAnywhere(t, store, client) })
	t.Run("order", func(t *testing.T) { restoreInOrder(t, store, client) })
	t.Run("keep", func(t *testing.T) { restoreAllBut(t, store, client) })
	t.Run("lease", func(t *testing.T) { restoreLease(t, store, client) })
	t.Run("another kind's", func(t *testing.T) {
		_, err := store.Restore(t.Context(), alien{}, nil)
		assert.ErrorContains(t, err, "another kind of store", "restored a snapshot of another kind")
	})
}

// alien is a snapshot that no kind of store has taken.
type alien struct{}

// Revision implements storage.Snapshot.
func (alien) Revision() int64 { return 1 }

func contents(t *testing.T, client *clientv3.Client) map[string]string {
	t.Helper()
	all, err := client.Get(t.Context(), "\x00", clientv3.WithFromKey())
	must(t, err)
	keys := map[string]string{}
	for _, kv := range all.Kvs {
		keys[string(kv.Key)] = string(kv.Value)
	}
	return keys
}

func put(t *testing.T, client *clientv3.Client, key, value string, opts ...clientv3.OpOption) {
	t.Helper()
	_, err := client.Put(t.Context(), key, value, opts...)
	must(t, err)
}

func remove(t *testing.T, client *clientv3.Client, key string) {
	t.Helper()
	_, err := client.Delete(t.Context(), key)
	must(t, err)
}

// same ends the test if got is not as wanted.
func same(t *testing.T, what string, want, got any) {
	t.Helper()
	require.Empty(t, cmp.Diff(want, got), "%s: -want +got", what)
}

func snapshot(t *testing.T, store storage.Snapshotter) storage.Snapshot {
	t.Helper()
	s, err := store.Snapshot(t.Context())
	must(t, err)
	return s
}

func restore(t *testing.T, store storage.Snapshotter, to storage.Snapshot, keep storage.Keep) []storage.Change {
	t.Helper()
	changes, err := store.Restore(t.Context(), to, keep)
	must(t, err)
	return changes
}

// restoreAnywhere restores random earlier states, and compares the store with
// the snapshot, with the changes Restore returned, and with what a watcher saw.
func restoreAnywhere(t *testing.T, store storage.Snapshotter, client *clientv3.Client) {
	random := rand.New(rand.NewPCG(1, 2))
	scribble := func() {
		for range 20 {
			key := fmt.Sprint("key-", random.IntN(12))
			if random.IntN(3) > 0 {
				put(t, client, key, fmt.Sprint(random.IntN(4)))
			} else {
				remove(t, client, key)
			}
		}
	}
	scribble()
	seen := contents(t, client)
	watch := client.Watch(t.Context(), "\x00", clientv3.WithFromKey())
	var snapshots []storage.Snapshot
	var states []map[string]string
	for round := range 30 {
		if round < 5 {
			snapshots, states = append(snapshots, snapshot(t, store)), append(states, contents(t, client))
		}
		scribble()
		before := contents(t, client)
		to := random.IntN(len(snapshots))
		for _, change := range restore(t, store, snapshots[to], nil) {
			if delete(before, change.Key); !change.Deleted {
				before[change.Key] = states[to][change.Key]
			}
		}
		same(t, fmt.Sprintf("round %d: the store", round), states[to], contents(t, client))
		same(t, fmt.Sprintf("round %d: what the changes say", round), states[to], before)
		mark := fmt.Sprint(round)
		put(t, client, "mark", mark)
		follow(t, watch, seen, mark)
		now := maps.Clone(states[to])
		now["mark"] = mark
		same(t, fmt.Sprintf("round %d: what the watcher saw", round), now, seen)
	}
}

// follow applies events until the key "mark" has a value.
func follow(t *testing.T, watch clientv3.WatchChan, seen map[string]string, mark string) {
	t.Helper()
	for response := range watch {
		for _, event := range response.Events {
			key := string(event.Kv.Key)
			if delete(seen, key); event.Type == clientv3.EventTypePut {
				seen[key] = string(event.Kv.Value)
			}
		}
		if seen["mark"] == mark {
			return
		}
	}
	t.Fatal("the watch ended")
}

// restoreInOrder checks that deletes come newest first, then puts oldest first,
// that a recreated key is deleted first, and that a second restore changes nothing.
func restoreInOrder(t *testing.T, store storage.Snapshotter, client *clientv3.Client) {
	for _, key := range []string{"order/z-old", "order/again", "order/a-young"} {
		put(t, client, key, "1")
	}
	to := snapshot(t, store)
	for _, key := range []string{"order/z-old", "order/again", "order/a-young"} {
		remove(t, client, key)
	}
	for _, key := range []string{"order/again", "order/x", "order/y"} {
		put(t, client, key, "2")
	}
	var order []string
	var last int64
	for _, change := range restore(t, store, to, nil) {
		assert.Greater(t, change.Revision, last, "%v is out of order", change)
		last = change.Revision
		order = append(order, fmt.Sprintf("%s %v", change.Key, change.Deleted))
	}
	want := []string{
		"order/y true", "order/x true", "order/again true",
		"order/z-old false", "order/again false", "order/a-young false",
	}
	same(t, "the changes", want, order)
	assert.Empty(t, restore(t, store, to, nil), "again")
	// A key brought back is not recreated when it changes again.
	put(t, client, "order/again", "3")
	changes := restore(t, store, to, nil)
	assert.True(t, len(changes) == 1 && !changes[0].Deleted, "a key that was only changed: %v", changes)
}

// restoreAllBut leaves alone the keys that Keep picks.
func restoreAllBut(t *testing.T, store storage.Snapshotter, client *clientv3.Client) {
	put(t, client, "keep/changed", "1")
	put(t, client, "keep/deleted", "1")
	put(t, client, "keep/same", "1")
	to := snapshot(t, store)
	put(t, client, "keep/changed", "2")
	put(t, client, "keep/added", "2")
	remove(t, client, "keep/deleted")
	asked := map[string]string{}
	changes := restore(t, store, to, func(key string, have, want *mvccpb.KeyValue) bool {
		asked[key] = fmt.Sprintf("%v %s, %v %s", have != nil, have.GetValue(), want != nil, want.GetValue())
		return key != "keep/added"
	})
	want := map[string]string{"keep/changed": "true 2, true 1", "keep/added": "true 2, false ", "keep/deleted": "false , true 1"}
	same(t, "what was asked", want, asked)
	assert.True(t, len(changes) == 1 && changes[0].Key == "keep/added" && changes[0].Deleted, "changes %v", changes)
	assert.Equal(t, "2", contents(t, client)["keep/changed"], "a key to be kept")
}

// restoreLease brings back a key whose lease is gone: it gets a new one.
func restoreLease(t *testing.T, store storage.Snapshotter, client *clientv3.Client) {
	lease, err := client.Grant(t.Context(), 1000)
	must(t, err)
	put(t, client, "lease/key", "1", clientv3.WithLease(lease.ID))
	to := snapshot(t, store)
	for range 2 {
		found, err := client.Get(t.Context(), "lease/key")
		require.NoError(t, err)
		require.Len(t, found.Kvs, 1)
		id := clientv3.LeaseID(found.Kvs[0].Lease)
		left, err := client.TimeToLive(t.Context(), id)
		assert.True(t, err == nil && left.TTL > 900 && left.TTL <= 1000, "lease %x has %v left, %v", id, left, err)
		_, err = client.Revoke(t.Context(), id)
		must(t, err)
		_, there := contents(t, client)["lease/key"]
		require.False(t, there, "the key outlives its lease")
		restore(t, store, to, nil)
	}
}
