package disk_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"snowglobe.test/envtest/storage/disk"
	"snowglobe.test/envtest/storage/disk/disktest"
	"snowglobe.test/internal/pages"
)

// segment is the size of the log's segments in these tests, which fill many.
const segment = 1 << 20

func smallSegments(t *testing.T) {
	was := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = segment
	t.Cleanup(func() { wal.SegmentSizeBytes = was })
}

// start starts an etcd with its data in one folder and its log in another. ending is called
// when it has failed and begins to end.
func start(t *testing.T, data, log string, ending func()) (*disk.Server, *clientv3.Client) {
	t.Helper()
	sockets, err := os.MkdirTemp("", "e")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	at := url.URL{Scheme: "unix", Path: filepath.Join(sockets, "c")}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.WalDir = data, log
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{at}, []url.URL{at}
	cfg.ListenPeerUrls = []url.URL{{Scheme: "unix", Host: filepath.Join(sockets, "p")}}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.TickMs, cfg.ElectionMs = 10, 100
	server, err := disk.Start(t.Context(), disk.Config{Etcd: cfg, Ending: ending})
	require.NoError(t, err)
	t.Cleanup(func() { <-server.End(true) })
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{at.String()}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return server, client
}

// fill writes until the server fails, and returns how many writes it acknowledged.
func fill(t *testing.T, server *disk.Server, client *clientv3.Client) (acknowledged int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		select {
		case <-server.Failed():
			cancel()
		case <-ctx.Done():
		}
	}()
	for ; server.Err() == nil; acknowledged++ {
		require.Less(t, acknowledged, 10_000, "the disk never fills up")
		if _, err := client.Put(ctx, fmt.Sprintf("key-%05d", acknowledged), strings.Repeat("v", 50_000)); err != nil {
			break
		}
	}
	select {
	case <-server.Failed():
	case <-time.After(10 * time.Second):
		t.Fatal("a write failed and the server did not")
	}
	return acknowledged
}

// TestFillsUp fills the disk of the database, then that of the log. Either ends the etcd, with
// one sentence, and keeps what was acknowledged: also if there is room again for the last
// commit, which would claim what the failed one has lost.
func TestFillsUp(t *testing.T) {
	for _, full := range []string{"database", "database for a moment", "log"} {
		t.Run(full, func(t *testing.T) {
			disktest.Small(t, 64<<20, func(dir string, _ func()) {
				smallSegments(t)
				before := runtime.NumGoroutine()
				data, log := dir, filepath.Join(t.TempDir(), "log")
				if full == "log" {
					data, log = t.TempDir(), filepath.Join(dir, "log")
				}
				free := func() {}
				ending := func() {}
				if full == "database for a moment" {
					ending = func() { free() }
				}
				server, client := start(t, data, log, ending)
				_, err := client.Put(t.Context(), "begin", "")
				require.NoError(t, err)
				free = sync.OnceFunc(disktest.Fill(t, dir, 2*segment))
				acknowledged := fill(t, server, client)
				assert.Greater(t, acknowledged, 3)
				assert.Contains(t, server.Err().Error(), fmt.Sprintf("etcd can't write: the disk of %q is full", data))
				pages.Troubleshooting(t, root, server.Err().Error())
				ended(t, server)
				require.NoError(t, client.Close())
				noMoreThan(t, before)

				free()
				_, again := start(t, data, log, nil)
				for i := range acknowledged {
					kept, err := again.Get(t.Context(), fmt.Sprintf("key-%05d", i))
					require.NoError(t, err)
					require.Len(t, kept.Kvs, 1, "write %d of %d was acknowledged", i, acknowledged)
				}
			})
		})
	}
}

func ended(t *testing.T, server *disk.Server) {
	t.Helper()
	select {
	case <-server.Ended():
	case <-time.After(20 * time.Second):
		_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 2)
		t.Fatal("it does not end")
	}
}

// noMoreThan waits until no more goroutines run than before, which those that have been
// joined may take a moment for.
func noMoreThan(t *testing.T, before int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stdout, 1)
			t.Fatalf("%d goroutines, and %d before", runtime.NumGoroutine(), before)
		}
	}
}

// TestInterrupted is a start whose context has ended.
func TestInterrupted(t *testing.T) {
	smallSegments(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cfg := embed.NewConfig()
	cfg.Dir = t.TempDir()
	socket := url.URL{Scheme: "unix", Host: filepath.Join(cfg.Dir, "p")}
	cfg.ListenPeerUrls = []url.URL{socket}
	cfg.ListenClientUrls = []url.URL{{Scheme: "unix", Path: filepath.Join(cfg.Dir, "c")}}
	server, err := disk.Start(ctx, disk.Config{Etcd: cfg})
	ended := server.End(true)
	require.ErrorIs(t, err, context.Canceled)
	<-ended
}
