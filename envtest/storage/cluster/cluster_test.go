package cluster_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/cluster"
	"snowglobe.test/internal/pages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ storage.Backend = (*cluster.Store)(nil)

// start returns a running cluster, and a context that bounds everything the test
// waits for.
func start(t *testing.T, cfg cluster.Config) (context.Context, *cluster.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	store, err := cluster.New(cfg)
	require.NoError(t, err)
	require.NoError(t, store.Start(ctx))
	t.Cleanup(func() { assert.NoError(t, store.Stop(context.Background())) })
	return ctx, store
}

func dial(t *testing.T, store *cluster.Store) *clientv3.Client {
	t.Helper()
	client, err := store.Client()
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client.Client
}

// dialMember returns a client of one member only. It has had no other endpoints: after SetEndpoints a client still
// calls one of those it had before for a moment.
func dialMember(t *testing.T, store *cluster.Store, i int) *clientv3.Client {
	t.Helper()
	endpoints := store.Endpoints()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints.URLs[i : i+1],
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return endpoints.Dial(ctx, "tcp", address)
			}),
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// put writes a key, and returns the revision. On a busy machine members elect another leader whenever they have not
// heard from theirs for half a second, and etcd may answer a write under way with a timeout: that one is written anew.
func put(ctx context.Context, t *testing.T, client *clientv3.Client, key string) int64 {
	t.Helper()
	resp, err := client.Put(ctx, key, "value of "+key)
	for errors.Is(err, rpctypes.ErrTimeout) || errors.Is(err, rpctypes.ErrTimeoutDueToLeaderFail) {
		resp, err = client.Put(ctx, key, "value of "+key)
	}
	require.NoError(t, err)
	return resp.Header.Revision
}

func count(ctx context.Context, t *testing.T, client *clientv3.Client, key string, opts ...clientv3.OpOption) int64 {
	t.Helper()
	resp, err := client.Get(ctx, key, opts...)
	require.NoError(t, err)
	return resp.Count
}

// ownTemp gives a test its own folder for temporary files, with a path short enough
// for sockets.
func ownTemp(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "")
	require.NoError(t, err)
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() { assert.NoError(t, os.Remove(dir), "it must be empty") })
}

// folders lists what clusters have left among the temporary files.
func folders(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	var all []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "snowglobe-etcd-") {
			all = append(all, entry.Name())
		}
	}
	return all
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  cluster.Config
		want string
	}{
		"one":     {cluster.Config{Members: 1}, "use the embedded kind"},
		"two":     {cluster.Config{Members: 2}, "has 3 or 5"},
		"four":    {cluster.Config{Members: 4}, "has 3 or 5"},
		"minus":   {cluster.Config{Members: -3}, "has 3 or 5"},
		"hasty":   {cluster.Config{ElectionTimeout: time.Millisecond}, "from 50ms to 50s"},
		"patient": {cluster.Config{ElectionTimeout: time.Hour}, "from 50ms to 50s"},
		"past":    {cluster.Config{StartTimeout: -1}, "start timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cluster.New(c.cfg)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "etcd cluster: ")
		})
	}
}

func TestStart(t *testing.T) {
	for _, members := range []int{3, 5} {
		t.Run(map[int]string{3: "three", 5: "five"}[members], func(t *testing.T) {
			ownTemp(t)
			ctx, store := start(t, cluster.Config{Members: members})
			assert.Len(t, store.Members(), members)
			endpoints := store.Endpoints()
			assert.Len(t, endpoints.URLs, members)
			for i := range members {
				client := dialMember(t, store, i)
				list, err := client.MemberList(ctx)
				require.NoError(t, err)
				assert.Len(t, list.Members, members)
				put(ctx, t, client, endpoints.URLs[i])
			}
			assert.EqualValues(t, members, count(ctx, t, dial(t, store), "http", clientv3.WithPrefix()))
			require.ErrorContains(t, store.Start(ctx), "started already")
			assert.Empty(t, store.Endpoints().URLs, "a second Start fails and stops the store, as the interface says")
			assert.Empty(t, folders(t))
		})
	}
}

// TestStartCancelled starts with a cancelled context: nothing is left behind.
func TestStartCancelled(t *testing.T) {
	ownTemp(t)
	store, err := cluster.New(cluster.Config{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err = store.Start(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "start etcd cluster: ")
	assert.Empty(t, folders(t))
	assert.NoError(t, store.Stop(context.Background()), "Stop is safe after a failed Start")
}

func TestStartTooDeep(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	require.NoError(t, os.Mkdir(deep, 0o700))
	t.Setenv("TMPDIR", deep)
	store, err := cluster.New(cluster.Config{})
	require.NoError(t, err)
	require.ErrorContains(t, store.Start(context.Background()), "set TMPDIR to a folder with a shorter path")
	assert.Empty(t, folders(t))
}

func TestStartTimeout(t *testing.T) {
	store, err := cluster.New(cluster.Config{StartTimeout: time.Nanosecond})
	require.NoError(t, err)
	err = store.Start(context.Background())
	require.ErrorContains(t, err, "not ready within 1ns; StartTimeout of its Config gives it longer")
	pages.Troubleshooting(t, root, err.Error())
}

// TestStopInEveryState stops clusters whose members are in various states, while a
// client watches.
func TestStopInEveryState(t *testing.T) {
	for name, prepare := range map[string]func(context.Context, *testing.T, *cluster.Store){
		"healthy":     func(context.Context, *testing.T, *cluster.Store) {},
		"one stopped": func(ctx context.Context, t *testing.T, s *cluster.Store) { require.NoError(t, s.StopMember(ctx, 1)) },
		"no quorum": func(ctx context.Context, t *testing.T, s *cluster.Store) {
			require.NoError(t, s.StopMember(ctx, 0))
			require.NoError(t, s.StopMember(ctx, 2))
		},
		"all stopped": func(ctx context.Context, t *testing.T, s *cluster.Store) {
			for i := range 3 {
				require.NoError(t, s.StopMember(ctx, i))
			}
		},
		"restarted without a quorum": func(ctx context.Context, t *testing.T, s *cluster.Store) {
			for i := range 3 {
				require.NoError(t, s.StopMember(ctx, i))
			}
			require.NoError(t, s.RestartMember(ctx, 0))
		},
		"leader cut off": func(ctx context.Context, t *testing.T, s *cluster.Store) {
			leader, err := s.Leader(ctx)
			require.NoError(t, err)
			require.NoError(t, s.CutOff(leader))
		},
		"all cut off": func(_ context.Context, t *testing.T, s *cluster.Store) {
			for i := range 3 {
				require.NoError(t, s.CutOff(i))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ownTemp(t)
			ctx, store := start(t, cluster.Config{})
			require.NotEmpty(t, folders(t))
			client := dial(t, store)
			put(ctx, t, client, "key")
			watch := client.Watch(ctx, "key", clientv3.WithCreatedNotify())
			require.True(t, (<-watch).Created)
			prepare(ctx, t, store)
			require.NoError(t, store.Stop(ctx))
			assert.Empty(t, folders(t))
			assert.Empty(t, store.Members())
			require.NoError(t, store.Stop(ctx), "a second Stop does nothing")
		})
	}
}

// TestStartAgain starts a store twice: the second time it is empty.
func TestStartAgain(t *testing.T) {
	ctx, store := start(t, cluster.Config{})
	put(ctx, t, dial(t, store), "key")
	require.NoError(t, store.Stop(ctx))
	require.NoError(t, store.Start(ctx))
	assert.Zero(t, count(ctx, t, dial(t, store), "key"))
}
