package etcd

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
)

// TestMain looks for goroutines that are left. Those of the client that an
// embedded etcd holds elections with are etcd's to end, which it doesn't do.
func TestMain(m *testing.M) {
	const adapter = "go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter."
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction(adapter+"newPipeStream.func1"),
		goleak.IgnoreAnyFunction(adapter+"(*chanStream).RecvMsg"),
		goleak.IgnoreTopFunction("go.etcd.io/etcd/client/v3.(*lessor).deadlineLoop"),
		goleak.IgnoreTopFunction("go.etcd.io/etcd/client/v3.(*lessor).sendKeepAliveLoop"),
	)
}

// newServer returns a server that is closed when the test ends.
func newServer(t testing.TB, cfg Config) *Server {
	t.Helper()
	s, err := New(cfg)
	require.NoError(t, err, "New")
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// dial returns a client that talks gRPC to s over memory.
func dial(t testing.TB, s *Server) *kubernetes.Client { return dialWith(t, s, clientv3.Config{}) }

// dialWith is dial with more configuration.
func dialWith(t testing.TB, s *Server, cfg clientv3.Config) *kubernetes.Client {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	cfg.Endpoints = []string{"passthrough:///memory"}
	cfg.DialOptions = []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return l.DialContext(ctx)
	})}
	return dialTo(t, s, l, cfg)
}

// dialSocket returns a client that talks gRPC to s over a socket, as the
// client of an embedded etcd does.
func dialSocket(t testing.TB, s *Server) *kubernetes.Client {
	t.Helper()
	path := filepath.Join(shortDir(t), "client")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	return dialTo(t, s, l, clientv3.Config{Endpoints: []string{"unix://" + path}})
}

// dialTo has s serve on l, and returns a client of it.
func dialTo(t testing.TB, s *Server, l net.Listener, cfg clientv3.Config) *kubernetes.Client {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	cfg.Logger = zap.NewNop()
	c, err := kubernetes.New(cfg)
	require.NoError(t, err, "dial")
	t.Cleanup(func() {
		_ = c.Close()
		_ = s.Close()
		assert.NoError(t, <-served, "Serve")
	})
	return c
}

// eachClient runs a test with an in-process client and with a gRPC client, each of a
// server of its own.
func eachClient(t *testing.T, cfg Config, test func(t *testing.T, s *Server, c *kubernetes.Client)) {
	t.Run("in process", func(t *testing.T) {
		s := newServer(t, cfg)
		test(t, s, s.Client())
	})
	t.Run("gRPC", func(t *testing.T) {
		s := newServer(t, cfg)
		test(t, s, dial(t, s))
	})
}

func TestPutGetWatch(t *testing.T) {
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w := c.Watch(ctx, "a", clientv3.WithPrefix(), clientv3.WithPrevKV())
		for _, v := range []string{"1", "2"} {
			_, err := c.Put(ctx, "a/x", v)
			require.NoError(t, err)
		}
		_, err := c.Delete(ctx, "a/x")
		require.NoError(t, err)
		var events []*clientv3.Event
		for len(events) < 3 {
			r, ok := <-w
			require.NoError(t, r.Err())
			require.True(t, ok, "watch ended")
			events = append(events, r.Events...)
		}
		e := events[2]
		assert.Equal(t, clientv3.EventTypeDelete, e.Type, "third event is %v", e)
		assert.Equal(t, "2", string(e.PrevKv.Value), "third event is %v", e)
		assert.Equal(t, int64(4), e.Kv.ModRevision, "third event is %v", e)
		g, err := c.KV.Get(ctx, "a/x", clientv3.WithRev(3))
		assert.False(t, err != nil || len(g.Kvs) != 1 || string(g.Kvs[0].Value) != "2", "at revision 3: %v, %v", g, err)
		st, err := c.Status(ctx, c.Endpoints()[0])
		assert.False(t, err != nil || st.Version != "3.7.3", "status %v, %v", st, err)
		assert.Equal(t, int64(4), s.Revision(), "revision")
		ch, err := c.GetStream(ctx, "a", clientv3.WithPrefix(), clientv3.WithRev(3))
		require.NoError(t, err)
		all, err := clientv3.GetStreamToGetResponse(ch)
		assert.False(t, err != nil || len(all.Kvs) != 1 || all.Header.Revision != 4, "stream: %v, %v", all, err)
		_, err = c.Kubernetes.OptimisticPut(ctx, "b", []byte("v"), 0, kubernetes.PutOptions{})
		assert.NoError(t, err)
		compacted, err := c.Compact(ctx, 5, clientv3.WithCompactPhysical())
		assert.True(t, err == nil && compacted.Header.Revision == 5, "compact: %v, %v", compacted, err)
		members, err := c.MemberList(ctx)
		assert.True(t, err == nil && len(members.Members) == 1, "members %v, %v", members, err)
		auth, err := c.AuthStatus(ctx)
		assert.True(t, err == nil && !auth.Enabled, "authentication %v, %v", auth, err)
	})
}

func TestLeaseExpiresInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{})
		require.NoError(t, err)
		defer s.Close()
		c := s.Client()
		ctx := context.Background()
		l, err := c.Grant(ctx, 60)
		require.NoError(t, err)
		_, err = c.Put(ctx, "k", "v", clientv3.WithLease(l.ID))
		require.NoError(t, err)
		w := c.Watch(ctx, "k", clientv3.WithProgressNotify())
		time.Sleep(59 * time.Second)
		g, _ := c.KV.Get(ctx, "k")
		assert.Len(t, g.Kvs, 1, "gone too early")
		time.Sleep(2 * time.Second)
		r := <-w
		assert.False(t, len(r.Events) != 1 || r.Events[0].Type != clientv3.EventTypeDelete, "got %v", r)
		time.Sleep(time.Hour)
		r = <-w
		assert.False(t, !r.IsProgressNotify() || r.Header.Revision != 3, "got %v", r)
	})
}
