package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	etcdlease "go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestSnapshotFile opens a saved snapshot with etcd's own storage.
func TestSnapshotFile(t *testing.T) {
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx := context.Background()
		scribble(t, c, rand.New(rand.NewPCG(8, 9)), 500)
		_, err := c.Compact(ctx, 250)
		require.NoError(t, err)
		l, err := c.Grant(ctx, 1000)
		require.NoError(t, err)
		put(t, c, "leased", "1", clientv3.WithLease(l.ID))
		want := contents(t, c)
		hash, err := c.HashKV(ctx, c.Endpoints()[0], 0)
		require.NoError(t, err)

		path := filepath.Join(t.TempDir(), "db")
		require.NoError(t, os.WriteFile(path, download(t, c), 0o600))
		be := backend.NewDefaultBackend(zap.NewNop(), path)
		defer be.Close()
		assert.NoError(t, schema.Validate(zap.NewNop(), be.ReadTx()))
		store := mvcc.NewStore(zap.NewNop(), be, &etcdlease.FakeLessor{}, mvcc.StoreConfig{})
		defer store.Close()
		assert.Equal(t, s.Revision(), store.Rev(), "revisions")
		assert.Equal(t, int64(250), store.FirstRev(), "revisions")
		got := make(map[string]string)
		all, err := store.Range(ctx, []byte{0}, []byte{}, mvcc.RangeOptions{})
		require.NoError(t, err)
		for _, kv := range all.KVs {
			got[string(kv.Key)] = string(kv.Value)
		}
		assert.Empty(t, cmp.Diff(want, got), "-server +file")
		restored, _, err := store.HashStorage().HashByRev(0)
		assert.False(t, err != nil || restored.Hash != hash.Hash, "hash %v, %v, want %d", restored, err, hash.Hash)
		tx := be.ReadTx()
		tx.RLock()
		defer tx.RUnlock()
		leases := schema.MustUnsafeGetAllLeases(tx)
		assert.False(t, len(leases) != 1 || leases[0].ID != int64(l.ID) || leases[0].TTL != 1000, "leases %v", leases)
	})
}

// download saves a snapshot and checks its digest.
func download(t *testing.T, c *kubernetes.Client) []byte {
	t.Helper()
	resp, err := c.SnapshotWithVersion(context.Background())
	require.NoError(t, err)
	defer resp.Snapshot.Close()
	all, err := io.ReadAll(resp.Snapshot)
	require.NoError(t, err)
	n := len(all) - sha256.Size
	digest := sha256.Sum256(all[:n])
	assert.Equal(t, storageVersion, resp.Version)
	assert.True(t, bytes.Equal(all[n:], digest[:]), "%d bytes, digest differs", n)
	return all[:n]
}

// TestSnapshotCancelled cancels a request while its snapshot is being made: the
// work stops, nothing is sent, and no file is left.
func TestSnapshotCancelled(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := newServer(t, Config{})
	c := s.Client()
	for i := range 10 * backendBatch {
		put(t, c, podKey(i), "v")
	}
	ctx := &impatient{Context: t.Context(), patience: 3}
	parts := &snapshotParts{ctx: ctx}
	err := (&maintenanceService{s: s}).Snapshot(&pb.SnapshotRequest{}, snapshotSender{to: parts})
	assert.Equal(t, codes.Canceled, status.Code(err), "sent %d messages, then %v", len(parts.list), err)
	assert.Empty(t, parts.list, "sent %d messages, then %v", len(parts.list), err)
	assert.LessOrEqual(t, ctx.asked, ctx.patience+5, "it went on: its context was asked")
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	assert.NoError(t, err)
	assert.Empty(t, left)
}

// impatient is a context that is cancelled after its error was checked that often.
type impatient struct {
	context.Context
	patience, asked int
}

func (i *impatient) Err() error {
	if i.asked++; i.asked > i.patience {
		return context.Canceled
	}
	return nil
}
