package etcd

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

func TestLeaseErrors(t *testing.T) {
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx := context.Background()
		if _, err := c.Grant(ctx, maxLeaseTTL+1); !errors.Is(err, rpctypes.ErrLeaseTTLTooLarge) {
			t.Error(err)
		}
		if _, err := c.Revoke(ctx, 1); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			t.Error(err)
		}
		if _, err := c.KeepAliveOnce(ctx, 1); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			t.Error(err)
		}
		if resp, err := c.TimeToLive(ctx, 1); err != nil || resp.TTL != -1 {
			t.Error(resp, err)
		}
		if _, err := c.Put(ctx, "a", "", clientv3.WithLease(1)); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			t.Error(err)
		}
		if l, err := c.Grant(ctx, 1); err != nil || l.TTL != 2 {
			t.Errorf("shorter than etcd grants: %v, %v", l, err)
		}
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
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, l.ID)
		}
		put(t, c, "b", "1", clientv3.WithLease(ids[1]))
		put(t, c, "a", "1", clientv3.WithLease(ids[1]))
		put(t, c, "c", "1", clientv3.WithLease(ids[0]))
		w := c.Watch(ctx, "", clientv3.WithFromKey(), clientv3.WithPrevKV())

		time.Sleep(9 * time.Second)
		if left, err := c.TimeToLive(ctx, ids[1], clientv3.WithAttachedKeys()); err != nil || left.TTL != 1 || left.GrantedTTL != 10 || len(left.Keys) != 2 {
			t.Errorf("got %v, %v", left, err)
		}
		if list, err := c.Leases(ctx); err != nil || len(list.Leases) != 3 || list.Leases[0].ID != ids[1] {
			t.Errorf("the next to expire comes first, got %v, %v", list, err)
		}
		time.Sleep(2 * time.Second)
		// All keys of a lease go at one revision, in order.
		resp := <-w
		var got []string
		for _, ev := range resp.Events {
			got = append(got, briefEvent(ev))
		}
		if want := []string{"DELETE a=@5 was 1", "DELETE b=@5 was 1"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		// One without keys leaves no trace.
		time.Sleep(10 * time.Second)
		if s.Revision() != 5 {
			t.Errorf("revision %d", s.Revision())
		}
		if _, err := c.KeepAliveOnce(ctx, ids[2]); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			t.Error(err)
		}
		if _, err := c.KeepAliveOnce(ctx, ids[0]); err != nil {
			t.Error(err)
		}
		time.Sleep(29 * time.Second)
		if resp, _ := c.KV.Get(ctx, "c"); len(resp.Kvs) != 1 {
			t.Error("renewed, yet gone")
		}
		time.Sleep(2 * time.Second)
		if resp, _ := c.KV.Get(ctx, "c"); len(resp.Kvs) != 0 {
			t.Error("still there")
		}
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
		if s.Revision() != before {
			t.Error("a lease took keys along that were not its any more")
		}
		if _, err := c.Revoke(t.Context(), long.ID); err != nil {
			t.Fatal(err)
		}
		if resp, _ := c.KV.Get(t.Context(), "", clientv3.WithFromKey(), clientv3.WithKeysOnly()); len(resp.Kvs) != 2 {
			t.Errorf("got %v", resp.Kvs)
		}
	})
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{})
		c := s.Client()
		l, err := c.Grant(t.Context(), 30)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		answers, err := c.KeepAlive(ctx, l.ID)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(95 * time.Second)
		n := 0
		for range len(answers) {
			if resp := <-answers; resp.TTL != 30 {
				t.Errorf("got %v", resp)
			}
			n++
		}
		if n != 10 {
			t.Errorf("renewed %d times in 95 s, want 10", n)
		}
		cancel()
		for range answers {
		}
		time.Sleep(31 * time.Second)
		if left, err := c.TimeToLive(t.Context(), l.ID); err != nil || left.TTL != -1 {
			t.Errorf("lives on without being kept alive: %v, %v", left, err)
		}
		gone, err := c.KeepAlive(t.Context(), l.ID)
		if err != nil {
			t.Fatal(err)
		}
		if resp, ok := <-gone; ok {
			t.Errorf("got %v for a lease that is gone", resp)
		}
		_ = c.Close()
		if _, err := c.KeepAlive(t.Context(), l.ID); err == nil {
			t.Error("kept alive through a closed client")
		}
	})
}
