package storage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// copyPage is how many keys a read returns.
const copyPage = 1000

// Copied is a Snapshot of any etcd: a copy of every key, made and brought back
// through a client. It may be used by one goroutine at a time.
type Copied struct {
	rev  int64
	keys map[string]*mvccpb.KeyValue
	// createRevs are the keys' current create revisions: a Restore that puts a
	// deleted key back gives it a new one.
	createRevs map[string]int64
	leases     map[clientv3.LeaseID]int64            // seconds each had left
	replaced   map[clientv3.LeaseID]clientv3.LeaseID // granted in place of one that is gone
}

// Copy reads every key of a store at one revision.
func Copy(ctx context.Context, client *clientv3.Client) (*Copied, error) {
	kvs, rev, err := readAll(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("copy the store: %w", err)
	}
	c := &Copied{
		rev: rev, keys: make(map[string]*mvccpb.KeyValue, len(kvs)), createRevs: make(map[string]int64, len(kvs)),
		leases: map[clientv3.LeaseID]int64{}, replaced: map[clientv3.LeaseID]clientv3.LeaseID{},
	}
	for _, kv := range kvs {
		c.keys[string(kv.Key)], c.createRevs[string(kv.Key)] = kv, kv.CreateRevision
		id := clientv3.LeaseID(kv.Lease)
		if _, known := c.leases[id]; known || id == clientv3.NoLease {
			continue
		}
		left, err := client.TimeToLive(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("copy the store: lease %x of %s: %w", id, kv.Key, err)
		}
		c.leases[id] = max(left.TTL, 1)
	}
	return c, nil
}

// CopyFrom implements Snapshot by Copy, for kinds of store that have nothing better.
func CopyFrom(ctx context.Context, store Backend) (Snapshot, error) {
	client, err := store.Client()
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	return Copy(ctx, client.Client)
}

// RestoreCopy implements Restore for kinds of store whose Snapshot is CopyFrom.
func RestoreCopy(ctx context.Context, store Backend, to Snapshot, keep Keep) ([]Change, error) {
	copied, ok := to.(*Copied)
	if !ok {
		return nil, fmt.Errorf("restore store %s: the snapshot, a %T, was taken by another kind of store", store, to)
	}
	client, err := store.Client()
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	return copied.Restore(ctx, client.Client, keep)
}

// readAll reads a store page by page at the revision of the first page.
func readAll(ctx context.Context, client *clientv3.Client) ([]*mvccpb.KeyValue, int64, error) {
	var kvs []*mvccpb.KeyValue
	var rev int64
	for key, more := "\x00", true; more; {
		page, err := client.Get(ctx, key, clientv3.WithFromKey(), clientv3.WithLimit(copyPage), clientv3.WithRev(rev))
		if err != nil {
			return nil, 0, err
		}
		rev = cmp.Or(rev, page.Header.Revision)
		kvs = append(kvs, page.Kvs...)
		if more = page.More; more {
			key = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
		}
	}
	return kvs, rev, nil
}

// Revision implements Snapshot.
func (c *Copied) Revision() int64 { return c.rev }

// Restore does what Snapshotter.Restore says, through a client. It does not keep
// other writers out: what they write meanwhile may stay.
func (c *Copied) Restore(ctx context.Context, client *clientv3.Client, keep Keep) ([]Change, error) {
	have, _, err := readAll(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("restore the store: %w", err)
	}
	deletes, puts := c.differences(have, keep)
	var changes []Change
	for _, key := range deletes {
		done, err := client.Delete(ctx, key)
		if err != nil {
			return changes, fmt.Errorf("restore the store: delete %s: %w", key, err)
		}
		changes = append(changes, Change{Key: key, Revision: done.Header.Revision, Deleted: true})
	}
	for _, kv := range puts {
		rev, err := c.put(ctx, client, kv)
		if err != nil {
			return changes, fmt.Errorf("restore the store: put %s: %w", kv.Key, err)
		}
		changes = append(changes, Change{Key: string(kv.Key), Revision: rev})
	}
	return changes, nil
}

// differences returns the keys to delete and the values to put, in order.
func (c *Copied) differences(have []*mvccpb.KeyValue, keep Keep) (deletes []string, puts []*mvccpb.KeyValue) {
	created := make(map[string]int64)
	unseen := maps.Clone(c.keys)
	for _, kv := range have {
		key := string(kv.Key)
		want := unseen[key]
		delete(unseen, key)
		if want != nil && string(want.Value) == string(kv.Value) && want.Lease == kv.Lease {
			continue
		}
		if keep != nil && keep(key, kv, want) {
			continue
		}
		if want == nil || kv.CreateRevision != c.createRevs[key] {
			deletes, created[key] = append(deletes, key), kv.CreateRevision
		}
		if want != nil {
			puts = append(puts, want)
		}
	}
	for key, want := range unseen {
		if keep == nil || !keep(key, nil, want) {
			puts = append(puts, want)
		}
	}
	slices.SortFunc(deletes, func(a, b string) int { return cmp.Compare(created[b], created[a]) })
	slices.SortFunc(puts, func(a, b *mvccpb.KeyValue) int {
		return cmp.Or(cmp.Compare(a.ModRevision, b.ModRevision), cmp.Compare(string(a.Key), string(b.Key)))
	})
	return deletes, puts
}

// put puts one key back with its lease and returns the new revision.
func (c *Copied) put(ctx context.Context, client *clientv3.Client, kv *mvccpb.KeyValue) (int64, error) {
	lease, err := c.lease(ctx, client, clientv3.LeaseID(kv.Lease))
	if err != nil {
		return 0, fmt.Errorf("lease %x: %w", kv.Lease, err)
	}
	kv.Lease = int64(lease)
	done, err := client.Txn(ctx).Then(
		clientv3.OpPut(string(kv.Key), string(kv.Value), clientv3.WithLease(lease)),
		clientv3.OpGet(string(kv.Key)),
	).Commit()
	if err != nil {
		return 0, err
	}
	c.createRevs[string(kv.Key)] = done.Responses[1].GetResponseRange().Kvs[0].CreateRevision
	return done.Header.Revision, nil
}

// lease returns the lease if it is alive, else a new one with the time it had left.
func (c *Copied) lease(ctx context.Context, client *clientv3.Client, id clientv3.LeaseID) (clientv3.LeaseID, error) {
	if id == clientv3.NoLease {
		return id, nil
	}
	old := id
	if replaced, ok := c.replaced[id]; ok {
		id = replaced
	}
	if alive, err := client.TimeToLive(ctx, id); err != nil || alive.TTL > 0 {
		return id, err
	}
	granted, err := client.Grant(ctx, c.leases[old])
	if err != nil {
		return id, err
	}
	c.replaced[old], c.leases[granted.ID] = granted.ID, c.leases[old]
	return granted.ID, nil
}
