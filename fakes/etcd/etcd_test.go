package etcd

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

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
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// dial returns a client that talks gRPC to s over memory.
func dial(t testing.TB, s *Server) *kubernetes.Client {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	return dialTo(t, s, l, clientv3.Config{
		Endpoints: []string{"passthrough:///memory"},
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return l.DialContext(ctx)
		})},
	})
}

// dialSocket returns a client that talks gRPC to s over a socket, as the
// client of an embedded etcd does.
func dialSocket(t testing.TB, s *Server) *kubernetes.Client {
	t.Helper()
	path := filepath.Join(shortDir(t), "client")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return dialTo(t, s, l, clientv3.Config{Endpoints: []string{"unix://" + path}})
}

// dialTo has s serve on l, and returns a client of it.
func dialTo(t testing.TB, s *Server, l net.Listener, cfg clientv3.Config) *kubernetes.Client {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	cfg.Logger = zap.NewNop()
	c, err := kubernetes.New(cfg)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = s.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
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
			if _, err := c.Put(ctx, "a/x", v); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Delete(ctx, "a/x"); err != nil {
			t.Fatal(err)
		}
		var events []*clientv3.Event
		for len(events) < 3 {
			r, ok := <-w
			if !ok || r.Err() != nil {
				t.Fatalf("watch ended: %v %v", ok, r.Err())
			}
			events = append(events, r.Events...)
		}
		if e := events[2]; e.Type != clientv3.EventTypeDelete || string(e.PrevKv.Value) != "2" || e.Kv.ModRevision != 4 {
			t.Errorf("third event is %v", e)
		}
		g, err := c.KV.Get(ctx, "a/x", clientv3.WithRev(3))
		if err != nil || len(g.Kvs) != 1 || string(g.Kvs[0].Value) != "2" {
			t.Errorf("at revision 3: %v, %v", g, err)
		}
		st, err := c.Status(ctx, c.Endpoints()[0])
		if err != nil || st.Version != "3.7.3" {
			t.Errorf("status %v, %v", st, err)
		}
		if got := s.Revision(); got != 4 {
			t.Errorf("revision %d, want 4", got)
		}
		ch, err := c.GetStream(ctx, "a", clientv3.WithPrefix(), clientv3.WithRev(3))
		if err != nil {
			t.Fatal(err)
		}
		all, err := clientv3.GetStreamToGetResponse(ch)
		if err != nil || len(all.Kvs) != 1 || all.Header.Revision != 4 {
			t.Errorf("stream: %v, %v", all, err)
		}
		if _, err := c.Kubernetes.OptimisticPut(ctx, "b", []byte("v"), 0, kubernetes.PutOptions{}); err != nil {
			t.Error(err)
		}
		if resp, err := c.Compact(ctx, 5, clientv3.WithCompactPhysical()); err != nil || resp.Header.Revision != 5 {
			t.Error(resp, err)
		}
		if m, err := c.MemberList(ctx); err != nil || len(m.Members) != 1 {
			t.Error(m, err)
		}
		if a, err := c.AuthStatus(ctx); err != nil || a.Enabled {
			t.Error(a, err)
		}
	})
}

func TestLeaseExpiresInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c := s.Client()
		ctx := context.Background()
		l, err := c.Grant(ctx, 60)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Put(ctx, "k", "v", clientv3.WithLease(l.ID)); err != nil {
			t.Fatal(err)
		}
		w := c.Watch(ctx, "k", clientv3.WithProgressNotify())
		time.Sleep(59 * time.Second)
		if g, _ := c.KV.Get(ctx, "k"); len(g.Kvs) != 1 {
			t.Error("gone too early")
		}
		time.Sleep(2 * time.Second)
		r := <-w
		if len(r.Events) != 1 || r.Events[0].Type != clientv3.EventTypeDelete {
			t.Errorf("got %v", r)
		}
		time.Sleep(time.Hour)
		r = <-w
		if !r.IsProgressNotify() || r.Header.Revision != 3 {
			t.Errorf("got %v", r)
		}
	})
}
