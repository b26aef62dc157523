package etcd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/protobuf/testing/protocmp"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// TestKubernetesClient does the same through the client of this package and
// through upstream's, which makes ranges and transactions of it.
func TestKubernetesClient(t *testing.T) {
	direct, plain := newServer(t, Config{}).Client(), newServer(t, Config{}).Client()
	upstream := kubernetes.Client{Client: plain.Client}
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(5, 6))
	key := func() string { return fmt.Sprintf("/r/%d/%d", rnd.IntN(3), rnd.IntN(5)) }
	rev := int64(1)
	both := func(step string, ask func(k kubernetes.Interface) (any, error)) {
		t.Helper()
		a, errA := ask(direct.Kubernetes)
		b, errB := ask(upstream)
		require.Empty(t, cmp.Diff(b, a, protocmp.Transform()), "%s: errors %v, %v\n-upstream +direct", step, errB, errA)
		require.Equal(t, fmt.Sprint(errB), fmt.Sprint(errA), "%s: errors %v, %v\n-upstream +direct", step, errB, errA)
	}
	for range 5000 {
		k, at := key(), max(rev-int64(rnd.IntN(6))+1, 0)*int64(rnd.IntN(2))
		expected := int64(0)
		if rnd.IntN(3) > 0 {
			if resp, _ := direct.Kubernetes.Get(ctx, k, kubernetes.GetOptions{}); resp.KV != nil {
				expected = resp.KV.ModRevision - int64(rnd.IntN(4)/3)
			}
		}
		back := rnd.IntN(2) == 0
		switch rnd.IntN(7) {
		case 0:
			both("get", func(c kubernetes.Interface) (any, error) {
				return c.Get(ctx, k, kubernetes.GetOptions{Revision: at})
			})
		case 1:
			opts := kubernetes.ListOptions{Revision: at, Limit: int64(rnd.IntN(4))}
			if back {
				opts.Continue = k + "\x00"
			}
			both("list", func(c kubernetes.Interface) (any, error) { return c.List(ctx, k[:rnd.IntN(2)+4], opts) })
		case 2:
			both("count", func(c kubernetes.Interface) (any, error) { return c.Count(ctx, k[:4], kubernetes.CountOptions{}) })
		case 3:
			both("delete", func(c kubernetes.Interface) (any, error) {
				return c.OptimisticDelete(ctx, k, expected, kubernetes.DeleteOptions{GetOnFailure: back})
			})
		case 4:
			both("put with a lease that is not", func(c kubernetes.Interface) (any, error) {
				return c.OptimisticPut(ctx, k, []byte("v"), expected, kubernetes.PutOptions{GetOnFailure: back, LeaseID: 77})
			})
		default:
			value := []byte(fmt.Sprint(rnd.IntN(9)))
			both("put", func(c kubernetes.Interface) (any, error) {
				resp, err := c.OptimisticPut(ctx, k, value, expected, kubernetes.PutOptions{GetOnFailure: back})
				rev = max(rev, resp.Revision)
				return resp, err
			})
		}
		if rnd.IntN(100) == 0 {
			for _, c := range []*kubernetes.Client{direct, plain} {
				_, _ = c.Compact(ctx, rev-5)
			}
		}
	}
	for _, empty := range []func(kubernetes.Interface) (any, error){
		func(c kubernetes.Interface) (any, error) { return c.Get(ctx, "", kubernetes.GetOptions{}) },
		func(c kubernetes.Interface) (any, error) { return c.Count(ctx, "", kubernetes.CountOptions{}) },
		func(c kubernetes.Interface) (any, error) {
			return c.OptimisticPut(ctx, "", nil, 0, kubernetes.PutOptions{})
		},
		func(c kubernetes.Interface) (any, error) {
			return c.OptimisticDelete(ctx, "", 0, kubernetes.DeleteOptions{})
		},
	} {
		both("empty key", empty)
	}
}

func TestClientEndpoints(t *testing.T) {
	a, b := newServer(t, Config{}), newServer(t, Config{Endpoint: "named"})
	got := b.Client().Endpoints()
	assert.False(t, len(got) != 1 || got[0] != "named", "endpoints %v", got)
	x, y := a.Client().Endpoints(), a.Client().Endpoints()
	assert.False(t, len(x) != 1 || x[0] != y[0] || x[0] == "named", "endpoints %v and %v", x, y)
	c := b.Client()
	assert.NoError(t, c.Sync(context.Background()))
	assert.Equal(t, []string{"named"}, c.Endpoints()[:1], "endpoints after Sync")
}

func TestClientClosed(t *testing.T) {
	s := newServer(t, Config{})
	c := s.Client()
	assert.ErrorIs(t, c.Close(), context.Canceled, "Close")
	ctx := context.Background()
	_, err := c.Put(ctx, "a", "")
	assert.True(t, clientv3.IsConnCanceled(err), "Put: %v", err)
	_, err = c.KV.Get(ctx, "a")
	assert.True(t, clientv3.IsConnCanceled(err), "Get: %v", err)
	_, err = c.Grant(ctx, 60)
	assert.True(t, clientv3.IsConnCanceled(err), "Grant: %v", err)
	_, err = c.Revoke(ctx, 1)
	assert.True(t, clientv3.IsConnCanceled(err), "Revoke: %v", err)
	_, err = c.Kubernetes.Get(ctx, "a", kubernetes.GetOptions{})
	assert.True(t, clientv3.IsConnCanceled(err), "Get: %v", err)
	_, err = c.Status(ctx, "")
	assert.True(t, clientv3.IsConnCanceled(err), "Status: %v", err)
	assert.Error(t, c.RequestProgress(ctx), "RequestProgress did not fail")
	_, err = s.Client().Put(ctx, "a", "")
	assert.NoError(t, err, "another client")
}

func TestServerClosed(t *testing.T) {
	s := newServer(t, Config{})
	c := s.Client()
	for range 2 {
		require.NoError(t, s.Close())
	}
	assert.Error(t, c.Ctx().Err(), "closing the server left a client open")
	late := s.Client()
	assert.Error(t, late.Ctx().Err(), "a client of a closed server is open")
	ctx := context.Background()
	kv := clientv3.NewKVFromKVClient(pb.NewKVClient(s.services.LocalConn()), nil)
	_, err := kv.Get(ctx, "a")
	assert.ErrorIs(t, err, rpctypes.ErrStopped, "Get")
	_, err = kv.Put(ctx, "a", "")
	assert.ErrorIs(t, err, rpctypes.ErrStopped, "Put")
	_, err = kv.Compact(ctx, 1)
	assert.ErrorIs(t, err, rpctypes.ErrStopped, "Compact")
}

func TestConfigValidate(t *testing.T) {
	for _, cfg := range []Config{
		{MaxRequestBytes: -1}, {MaxTxnOps: -1}, {MinLeaseTTL: -1}, {WatchBuffer: -1}, {ProgressNotifyInterval: -1},
		{MinLeaseTTL: keyspace.MaxLeaseTTL + 1},
	} {
		_, err := New(cfg)
		assert.Error(t, err, "%+v was accepted", cfg)
		_, err = newServer(t, Config{}).Snapshot().Fork(cfg)
		assert.Error(t, err, "%+v was accepted for a fork", cfg)
	}
}
