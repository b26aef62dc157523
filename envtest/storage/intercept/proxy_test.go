package intercept_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/memnet"
	"snowglobe.test/envtest/storage/intercept"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/internal/pki"
)

// behindProxy runs f with etcd's own client of a store, connected through a proxy.
func behindProxy(t *testing.T, f func(t *testing.T, client *clientv3.Client, set *fault.Set, proxy *intercept.Proxy)) {
	t.Helper()
	behindProxyOf(t, func(*testing.T, *memory.Store, *intercept.Proxy) {}, f)
}

// behindProxyOf does so with a proxy that is set up first.
func behindProxyOf(t *testing.T, setUp func(*testing.T, *memory.Store, *intercept.Proxy), f func(t *testing.T, client *clientv3.Client, set *fault.Set, proxy *intercept.Proxy)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New("behind")
		require.NoError(t, store.Start(t.Context()))
		set := fault.New(fault.Config{})
		injector := edge.NewInjector(set, "apiserver-0", edge.Effects{})
		proxy := &intercept.Proxy{Injector: injector, Dial: store.Endpoints().Dial}
		setUp(t, store, proxy)
		client, err := clientv3.New(clientv3.Config{
			Endpoints: []string{"http://behind.memory:2379"}, Logger: zap.NewNop(), Context: t.Context(),
			DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return proxy.DialContext(ctx, "tcp", address)
			})},
		})
		require.NoError(t, err)
		f(t, client, set, proxy)
		injector.End()
		_ = client.Close()
		require.NoError(t, proxy.Close(context.Background()))
		require.NoError(t, store.Stop(context.Background()))
		time.Sleep(time.Second) // until gRPC's own goroutines have ended
	})
}

// TestProxyCalls looks at how the calls of etcd's own client look to rules, and
// at what a rule that is about one of them does to it.
func TestProxyCalls(t *testing.T) {
	const key = "/registry/ranges/servicenodeports"
	put := clientv3.OpPut(key, "new")
	for name, test := range map[string]struct {
		point string
		key   string
		do    func(context.Context, *clientv3.Client) error
	}{
		"get": {"store/range", key, func(ctx context.Context, c *clientv3.Client) error { return second(c.Get(ctx, key)) }},
		"list": {"store/list", key, func(ctx context.Context, c *clientv3.Client) error {
			return second(c.Get(ctx, key, clientv3.WithPrefix()))
		}},
		"count": {"store/count", key, func(ctx context.Context, c *clientv3.Client) error {
			return second(c.Get(ctx, key, clientv3.WithCountOnly()))
		}},
		"stream": {"store/list", key, func(ctx context.Context, c *clientv3.Client) error {
			parts, err := c.GetStream(ctx, key, clientv3.WithPrefix())
			for part := range parts {
				err = part.Err()
			}
			return err
		}},
		"put":     {"store/put", key, func(ctx context.Context, c *clientv3.Client) error { return second(c.Put(ctx, key, "new")) }},
		"delete":  {"store/delete", key, func(ctx context.Context, c *clientv3.Client) error { return second(c.Delete(ctx, key)) }},
		"compact": {"store/compact", "", func(ctx context.Context, c *clientv3.Client) error { return second(c.Compact(ctx, 1)) }},
		"lease":   {"store/lease-grant", "", func(ctx context.Context, c *clientv3.Client) error { return second(c.Grant(ctx, 100)) }},
		"update": {"store/put", key, func(ctx context.Context, c *clientv3.Client) error {
			return second(c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(put).Else(clientv3.OpGet(key)).Commit())
		}},
		"remove": {"store/delete", key, func(ctx context.Context, c *clientv3.Client) error {
			return second(c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(clientv3.OpDelete(key)).Commit())
		}},
		"transaction": {"store/txn", "/other", func(ctx context.Context, c *clientv3.Client) error {
			return second(c.Txn(ctx).If(clientv3.Compare(clientv3.Value("/other"), "=", "")).Then(put).Commit())
		}},
		"bare transaction": {"store/txn", key, func(ctx context.Context, c *clientv3.Client) error {
			return second(c.Txn(ctx).Then(put).Commit())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			behindProxy(t, func(t *testing.T, client *clientv3.Client, set *fault.Set, _ *intercept.Proxy) {
				require.NoError(t, test.do(t.Context(), client), "passing")

				gate, err := set.Gate(test.point)
				require.NoError(t, err)
				done := make(chan error, 1)
				go func() { done <- test.do(t.Context(), client) }()
				held, err := gate.Await(t.Context(), 1)
				require.NoError(t, err)
				assert.Equal(t, []fault.Operation{{Point: test.point, Phase: fault.Before, Server: "apiserver-0", Key: test.key, Occurrence: 1}}, held)
				assert.Empty(t, done)
				gate.Remove()
				require.NotErrorIs(t, <-done, context.Canceled, "released")

				rule, err := fault.Parse("fail "+test.point+" with=no-leader", fault.Names{})
				require.NoError(t, err)
				_, err = set.Add(rule)
				require.NoError(t, err)
				assert.ErrorIs(t, test.do(t.Context(), client), rpctypes.ErrNoLeader, "failed")
			})
		})
	}
}

// second is the error of a call.
func second[T any](_ T, err error) error { return err }

// TestProxyLosesReplies writes, and hears nothing of it.
func TestProxyLosesReplies(t *testing.T) {
	behindProxy(t, func(t *testing.T, client *clientv3.Client, set *fault.Set, _ *intercept.Proxy) {
		rule, err := fault.Parse("lose-reply store/put with=request-timed-out times=1", fault.Names{})
		require.NoError(t, err)
		_, err = set.Add(rule)
		require.NoError(t, err)
		_, err = client.Put(t.Context(), "a", "written")
		require.ErrorIs(t, err, rpctypes.ErrTimeout)
		got, err := client.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Len(t, got.Kvs, 1)
		assert.Equal(t, "written", string(got.Kvs[0].Value))
	})
}

// TestProxyPassesTheRest watches, keeps a lease alive and asks for a status: no
// point is about any of it here.
func TestProxyPassesTheRest(t *testing.T) {
	behindProxy(t, func(t *testing.T, client *clientv3.Client, _ *fault.Set, _ *intercept.Proxy) {
		status, err := client.Status(t.Context(), client.Endpoints()[0])
		require.NoError(t, err)
		assert.NotEmpty(t, status.Version)

		lease, err := client.Grant(t.Context(), 10)
		require.NoError(t, err)
		_, err = client.KeepAliveOnce(t.Context(), lease.ID)
		require.NoError(t, err)

		watching, end := context.WithCancel(t.Context())
		events := client.Watch(watching, "a")
		for _, value := range []string{"one", "two"} {
			_, err = client.Put(t.Context(), "a", value)
			require.NoError(t, err)
			response := <-events
			require.Len(t, response.Events, 1)
			assert.Equal(t, value, string(response.Events[0].Kv.Value))
		}
		end()
		for range events { // until it ends
		}
	})
}

// TestProxyFailsFast takes the store away while the API server stops: who would try
// again is told not to.
func TestProxyFailsFast(t *testing.T) {
	behindProxy(t, func(t *testing.T, client *clientv3.Client, set *fault.Set, proxy *intercept.Proxy) {
		rule, err := fault.Parse("fail store/range with=unavailable", fault.Names{})
		require.NoError(t, err)
		_, err = set.Add(rule)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = client.Get(ctx, "a")
		require.ErrorIs(t, err, context.DeadlineExceeded, "it tries again")

		proxy.FailFast()
		_, err = client.Get(t.Context(), "a")
		assert.Equal(t, codes.FailedPrecondition, status.Code(err), "%v", err)
	})
}

// TestProxySpeaksTLS has a member behind the proxy that wants TLS.
func TestProxySpeaksTLS(t *testing.T) {
	for name, test := range map[string]struct {
		host string // that the certificate is for
		ok   bool
	}{
		"good certificate": {"behind.memory", true},
		"of another":       {"elsewhere", false},
	} {
		t.Run(name, func(t *testing.T) {
			behindProxyOf(t, func(t *testing.T, store *memory.Store, proxy *intercept.Proxy) {
				authority, err := pki.NewAuthority("store")
				require.NoError(t, err)
				certificate, ca, err := authority.Certify(test.host)
				require.NoError(t, err)
				listener := memnet.Listen()
				go func() {
					config := &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}}
					_ = store.Server().Serve(tls.NewListener(listener, config)) // until the store stops
				}()
				roots := x509.NewCertPool()
				require.True(t, roots.AppendCertsFromPEM(ca))
				proxy.Dial, proxy.TLS = listener.DialNetwork, &tls.Config{RootCAs: roots}
			}, func(t *testing.T, client *clientv3.Client, _ *fault.Set, proxy *intercept.Proxy) {
				if test.ok {
					_, err := client.Put(t.Context(), "a", "b")
					assert.NoError(t, err)
					return
				}
				_, err := proxy.DialContext(t.Context(), "tcp", "behind.memory:2379")
				assert.ErrorContains(t, err, "connect to the store at behind.memory:2379: it does not answer as an etcd")
			})
		})
	}
}

// TestProxyFollowsItsMember ends the member's connection: the client's does, too,
// and it dials again until the member is back.
func TestProxyFollowsItsMember(t *testing.T) {
	var behind net.Conn
	dials := 0
	behindProxyOf(t, func(_ *testing.T, _ *memory.Store, proxy *intercept.Proxy) {
		dial := proxy.Dial
		proxy.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials++; dials == 2 {
				return nil, errors.New("away")
			}
			var err error
			behind, err = dial(ctx, network, address)
			return behind, err
		}
	}, func(t *testing.T, client *clientv3.Client, _ *fault.Set, _ *intercept.Proxy) {
		_, err := client.Put(t.Context(), "a", "b")
		require.NoError(t, err)
		require.NoError(t, behind.Close())
		synctest.Wait() // until the client knows
		_, err = client.Put(t.Context(), "a", "c")
		require.NoError(t, err)
		assert.Equal(t, 3, dials)
	})
}

// TestProxyCloseIsBounded has a call under way that nothing breaks off.
func TestProxyCloseIsBounded(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	behindProxyOf(t, func(t *testing.T, _ *memory.Store, proxy *intercept.Proxy) {
		set := fault.New(fault.Config{})
		rule, err := fault.Parse("compact store/put", nil)
		require.NoError(t, err)
		_, err = set.Add(rule)
		require.NoError(t, err)
		proxy.Injector = edge.NewInjector(set, "apiserver-0", edge.Effects{Compact: func(context.Context) error {
			close(began)
			<-goOn
			return nil
		}})
		began, goOn = make(chan struct{}), make(chan struct{})
	}, func(t *testing.T, client *clientv3.Client, _ *fault.Set, proxy *intercept.Proxy) {
		go func() { _, _ = client.Put(t.Context(), "a", "b") }()
		<-began
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		err := proxy.Close(ctx)
		assert.ErrorContains(t, err, "close the proxy of the store: a connection has not ended: context deadline exceeded")
		assert.ErrorContains(t, err, "in intercept_test.", "who it is")
		assert.Equal(t, time.Second, time.Since(start))
		close(goOn)
	})
}
