package etcd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"

	"snowglobe.test/internal/tempdir"
)

// backendBuckets are the buckets of an etcd 3.7 database.
var backendBuckets = [...]string{
	"key", "meta", "lease", "alarm", "cluster", "members", "members_removed", "auth", "authUsers", "authRoles",
}

// backendBatch is how many versions are written between two checks of the context.
const backendBatch = 1000

// backendFile returns a snapshot as an etcd database file, unless ctx ends first.
// It makes the file in a temporary folder and removes that before it returns.
func backendFile(ctx context.Context, n *Snapshot, raftIndex uint64) (file []byte, err error) {
	dir, err := tempdir.Make("etcd-snapshot")
	if err != nil {
		return nil, fmt.Errorf("make etcd snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	path := filepath.Join(dir.Path(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		return nil, fmt.Errorf("make etcd snapshot: %w", err)
	}
	err = db.Update(func(tx *bolt.Tx) error { return n.writeBackend(ctx, tx, raftIndex) })
	if err = errors.Join(err, db.Close()); err != nil {
		return nil, fmt.Errorf("make etcd snapshot: %w", err)
	}
	return os.ReadFile(path)
}

// writeBackend fills the buckets.
func (n *Snapshot) writeBackend(ctx context.Context, tx *bolt.Tx, raftIndex uint64) error {
	for _, name := range backendBuckets {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	meta := map[string][]byte{
		"consistent_index": binary.BigEndian.AppendUint64(nil, max(raftIndex, 1)),
		"term":             binary.BigEndian.AppendUint64(nil, raftTerm),
		"storageVersion":   []byte(storageVersion),
	}
	if rev := n.keys.compactRev; rev > 0 {
		done := appendRevisionKey(nil, &version{kv: mvccpb.KeyValue{ModRevision: rev, Version: 1}})
		meta["scheduledCompactRev"], meta["finishedCompactRev"] = done, done
	}
	for key, value := range meta {
		if err := tx.Bucket([]byte("meta")).Put([]byte(key), value); err != nil {
			return err
		}
	}
	bucket := tx.Bucket([]byte("key"))
	bucket.FillPercent = 0.9 // keys come in order
	for i, v := range storedAt(&n.keys, n.keys.rev) {
		if i%backendBatch == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := bucket.Put(appendRevisionKey(nil, v.version), appendStored(nil, v.version)); err != nil {
			return err
		}
	}
	var err error
	n.leases.byID.Ascend(func(le *lease) bool {
		err = tx.Bucket([]byte("lease")).Put(storedLease(le))
		return err == nil
	})
	return err
}

// storedLease is a lease in etcd's backend: its id, and a message of ID and TTL.
func storedLease(le *lease) (key, value []byte) {
	key = binary.BigEndian.AppendUint64(nil, uint64(le.id))
	value = protowire.AppendTag(value, 1, protowire.VarintType)
	value = protowire.AppendVarint(value, uint64(le.id))
	value = protowire.AppendTag(value, 2, protowire.VarintType)
	value = protowire.AppendVarint(value, uint64(le.ttl))
	return key, value
}
