package etcd

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// TestBubble uses everything that waits in virtual time, and closes the server
// while it is in use. The bubble does not end if anything is left.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{WatchBuffer: 2})
		c := s.Client()
		ctx := context.Background()
		id := keptAlive(t, c)
		unread := c.Watch(ctx, "k", clientv3.WithPrefix(), clientv3.WithProgressNotify())
		future := c.Watch(ctx, "k", clientv3.WithRev(1_000_000))
		for i := range 100 {
			put(t, c, fmt.Sprint("k", i), "v", clientv3.WithLease(id))
		}
		c.Watch(ctx, "k", clientv3.WithPrefix(), clientv3.WithRev(2))
		time.Sleep(time.Hour)
		events(t, unread, 100)
		checkAlive(t, c, id)
		assert.Empty(t, future, "something came from the future")
		closeAtOnce(t, s)
	})
}

// TestBubbleGRPC does the same over gRPC.
func TestBubbleGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{WatchBuffer: 2})
		c := dial(t, s)
		id := keptAlive(t, c)
		watched := c.Watch(t.Context(), "k", clientv3.WithPrefix(), clientv3.WithProgressNotify(), clientv3.WithCreatedNotify())
		require.True(t, (<-watched).Created)
		for i := range 100 {
			put(t, c, fmt.Sprint("k", i), "v", clientv3.WithLease(id))
		}
		time.Sleep(time.Hour)
		events(t, watched, 100)
		checkAlive(t, c, id)
		closeAtOnce(t, s)
	})
}

// keptAlive returns a lease of ten minutes that is kept alive.
func keptAlive(t *testing.T, c *kubernetes.Client) clientv3.LeaseID {
	t.Helper()
	l, err := c.Grant(context.Background(), 600)
	require.NoError(t, err)
	_, err = c.KeepAlive(context.Background(), l.ID)
	require.NoError(t, err)
	return l.ID
}

func checkAlive(t *testing.T, c *kubernetes.Client, id clientv3.LeaseID) {
	t.Helper()
	left, err := c.TimeToLive(context.Background(), id)
	assert.False(t, err != nil || left.TTL < 300, "the lease was not kept alive: %v, %v", left, err)
}

// closeAtOnce closes s and checks that no time passed.
func closeAtOnce(t *testing.T, s *Server) {
	t.Helper()
	began := time.Now()
	assert.NoError(t, s.Close())
	assert.LessOrEqual(t, time.Since(began), time.Duration(0), "closing took")
}

// TestConcurrently has many clients do everything at once. It is for the race
// detector, and checks what must hold whatever the order.
func TestConcurrently(t *testing.T) {
	s := newServer(t, Config{WatchBuffer: 4})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var writers, readers sync.WaitGroup
	const rounds = 300
	for w := range 4 {
		c := s.Client()
		writers.Go(func() {
			for i := range rounds {
				key := fmt.Sprintf("k%d", (w+i)%7)
				put(t, c, key, fmt.Sprint(w, " ", i))
				if i%5 == 0 {
					del(t, c, key)
				}
				if i%50 == 0 {
					_, _ = c.Compact(ctx, s.Revision()-20)
					snapshot := s.Snapshot()
					fork, err := snapshot.Fork(Config{})
					if err != nil {
						t.Error(err)
						return
					}
					put(t, fork.Client(), "fork", "")
					_ = fork.Close()
				}
			}
		})
		readers.Go(func() {
			// Every event once and in order, whether it came live or from history.
			c := s.Client()
			last := int64(0)
			for resp := range c.Watch(ctx, "k", clientv3.WithPrefix(), clientv3.WithPrevKV()) {
				for _, ev := range resp.Events {
					assert.Greater(t, ev.Kv.ModRevision, last, "revision")
					last = ev.Kv.ModRevision
					assert.False(t, ev.PrevKv != nil && ev.PrevKv.ModRevision >= last, "event %v", ev)
				}
				assert.False(t, resp.IsProgressNotify() && resp.Header.Revision < last, "progress to %d after %d", resp.Header.Revision, last)
			}
		})
		readers.Go(func() {
			c := s.Client()
			for ctx.Err() == nil {
				resp, err := c.Kubernetes.List(ctx, "k", kubernetes.ListOptions{})
				assert.False(t, err == nil && int64(len(resp.Kvs)) != resp.Count, "%d keys, count %d", len(resp.Kvs), resp.Count)
				_ = c.RequestProgress(ctx)
			}
		})
	}
	writers.Wait()
	cancel()
	readers.Wait()
}
