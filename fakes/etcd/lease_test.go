package etcd

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

func TestLeaseErrors(t *testing.T) {
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx := context.Background()
		_, err := c.Grant(ctx, keyspace.MaxLeaseTTL+1)
		assert.ErrorIs(t, err, rpctypes.ErrLeaseTTLTooLarge)
		_, err = c.Revoke(ctx, 1)
		assert.ErrorIs(t, err, rpctypes.ErrLeaseNotFound)
		_, err = c.KeepAliveOnce(ctx, 1)
		assert.ErrorIs(t, err, rpctypes.ErrLeaseNotFound)
		left, err := c.TimeToLive(ctx, 1)
		assert.True(t, err == nil && left.TTL == -1, "left are %v, %v", left, err)
		_, err = c.Put(ctx, "a", "", clientv3.WithLease(1))
		assert.ErrorIs(t, err, rpctypes.ErrLeaseNotFound)
		l, err := c.Grant(ctx, 1)
		assert.False(t, err != nil || l.TTL != 2, "shorter than etcd grants: %v, %v", l, err)
	})
}

func TestLeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{})
		c := s.Client()
		ctx := t.Context()
		var ids []clientv3.LeaseID
		for _, ttl := range []int64{30, 10, 20} {
			l, err := c.Grant(ctx, ttl)
			require.NoError(t, err)
			ids = append(ids, l.ID)
		}
		put(t, c, "b", "1", clientv3.WithLease(ids[1]))
		put(t, c, "a", "1", clientv3.WithLease(ids[1]))
		put(t, c, "c", "1", clientv3.WithLease(ids[0]))
		w := c.Watch(ctx, "", clientv3.WithFromKey(), clientv3.WithPrevKV())

		time.Sleep(9 * time.Second)
		left, err := c.TimeToLive(ctx, ids[1], clientv3.WithAttachedKeys())
		assert.False(t, err != nil || left.TTL != 1 || left.GrantedTTL != 10 || len(left.Keys) != 2, "got %v, %v", left, err)
		list, err := c.Leases(ctx)
		assert.False(t, err != nil || len(list.Leases) != 3 || list.Leases[0].ID != ids[1], "the next to expire comes first, got %v, %v", list, err)
		time.Sleep(2 * time.Second)
		// All keys of a lease go at one revision, in order.
		resp := <-w
		var got []string
		for _, ev := range resp.Events {
			got = append(got, briefEvent(ev))
		}
		want := []string{"DELETE a=@5 was 1", "DELETE b=@5 was 1"}
		assert.True(t, slices.Equal(got, want), "got %v, want %v", got, want)
		// One without keys leaves no trace.
		time.Sleep(10 * time.Second)
		assert.Equal(t, int64(5), s.Revision(), "revision")
		_, err = c.KeepAliveOnce(ctx, ids[2])
		assert.ErrorIs(t, err, rpctypes.ErrLeaseNotFound)
		_, err = c.KeepAliveOnce(ctx, ids[0])
		assert.NoError(t, err)
		time.Sleep(29 * time.Second)
		found, err := c.KV.Get(ctx, "c")
		require.NoError(t, err)
		assert.Len(t, found.Kvs, 1, "renewed, yet gone")
		time.Sleep(2 * time.Second)
		found, err = c.KV.Get(ctx, "c")
		require.NoError(t, err)
		assert.Empty(t, found.Kvs, "still there")
	})
}

func TestLeaseMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{})
		c := s.Client()
		short, _ := c.Grant(t.Context(), 10)
		long, _ := c.Grant(t.Context(), 100)
		put(t, c, "moved", "1", clientv3.WithLease(short.ID))
		put(t, c, "freed", "1", clientv3.WithLease(short.ID))
		put(t, c, "deleted", "1", clientv3.WithLease(short.ID))
		put(t, c, "moved", "2", clientv3.WithLease(long.ID))
		put(t, c, "freed", "2")
		del(t, c, "deleted")
		put(t, c, "deleted", "2")
		before := s.Revision()
		time.Sleep(11 * time.Second)
		assert.Equal(t, before, s.Revision(), "a lease took keys along that were not its any more")
		_, err := c.Revoke(t.Context(), long.ID)
		require.NoError(t, err)
		resp, _ := c.KV.Get(t.Context(), "", clientv3.WithFromKey(), clientv3.WithKeysOnly())
		assert.Len(t, resp.Kvs, 2)
	})
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{})
		c := s.Client()
		l, err := c.Grant(t.Context(), 30)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		answers, err := c.KeepAlive(ctx, l.ID)
		require.NoError(t, err)
		time.Sleep(95 * time.Second)
		n := 0
		for range len(answers) {
			resp := <-answers
			assert.Equal(t, int64(30), resp.TTL, "got %v", resp)
			n++
		}
		assert.Equal(t, 10, n, "renewed")
		cancel()
		for range answers {
		}
		time.Sleep(31 * time.Second)
		left, err := c.TimeToLive(t.Context(), l.ID)
		assert.False(t, err != nil || left.TTL != -1, "lives on without being kept alive: %v, %v", left, err)
		gone, err := c.KeepAlive(t.Context(), l.ID)
		require.NoError(t, err)
		resp, ok := <-gone
		assert.False(t, ok, "got %v for a lease that is gone", resp)
		_ = c.Close()
		_, err = c.KeepAlive(t.Context(), l.ID)
		assert.Error(t, err, "kept alive through a closed client")
	})
}
