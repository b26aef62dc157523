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
		if _, err := c.Compact(ctx, 250); err != nil {
			t.Fatal(err)
		}
		l, err := c.Grant(ctx, 1000)
		if err != nil {
			t.Fatal(err)
		}
		put(t, c, "leased", "1", clientv3.WithLease(l.ID))
		want := contents(t, c)
		hash, err := c.HashKV(ctx, c.Endpoints()[0], 0)
		if err != nil {
			t.Fatal(err)
		}

		path := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(path, download(t, c), 0o600); err != nil {
			t.Fatal(err)
		}
		be := backend.NewDefaultBackend(zap.NewNop(), path)
		defer be.Close()
		if err := schema.Validate(zap.NewNop(), be.ReadTx()); err != nil {
			t.Error(err)
		}
		store := mvcc.NewStore(zap.NewNop(), be, &etcdlease.FakeLessor{}, mvcc.StoreConfig{})
		defer store.Close()
		if store.Rev() != s.Revision() || store.FirstRev() != 250 {
			t.Errorf("revisions %d to %d, want 250 to %d", store.FirstRev(), store.Rev(), s.Revision())
		}
		got := make(map[string]string)
		all, err := store.Range(ctx, []byte{0}, []byte{}, mvcc.RangeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range all.KVs {
			got[string(kv.Key)] = string(kv.Value)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-server +file:\n%s", diff)
		}
		restored, _, err := store.HashStorage().HashByRev(0)
		if err != nil || restored.Hash != hash.Hash {
			t.Errorf("hash %v, %v, want %d", restored, err, hash.Hash)
		}
		tx := be.ReadTx()
		tx.RLock()
		defer tx.RUnlock()
		leases := schema.MustUnsafeGetAllLeases(tx)
		if len(leases) != 1 || leases[0].ID != int64(l.ID) || leases[0].TTL != 1000 {
			t.Errorf("leases %v", leases)
		}
	})
}

// download saves a snapshot and checks its digest.
func download(t *testing.T, c *kubernetes.Client) []byte {
	t.Helper()
	resp, err := c.SnapshotWithVersion(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Snapshot.Close()
	all, err := io.ReadAll(resp.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	n := len(all) - sha256.Size
	if digest := sha256.Sum256(all[:n]); resp.Version != storageVersion || !bytes.Equal(all[n:], digest[:]) {
		t.Errorf("version %q, %d bytes, digest differs", resp.Version, n)
	}
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
	if status.Code(err) != codes.Canceled || len(parts.list) > 0 {
		t.Errorf("sent %d messages, then %v", len(parts.list), err)
	}
	if ctx.asked > ctx.patience+5 {
		t.Errorf("it went on: its context was asked %d times", ctx.asked)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
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
