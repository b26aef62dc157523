package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/fakes/etcd/internal/keyspace"
)

// briefEvent returns an event as "PUT key=value@revision was value".
func briefEvent(ev *clientv3.Event) string {
	text := fmt.Sprintf("%s %s=%s@%d", ev.Type, ev.Kv.Key, ev.Kv.Value, ev.Kv.ModRevision)
	if ev.PrevKv != nil {
		text += " was " + string(ev.PrevKv.Value)
	}
	return text
}

// events reads n events.
func events(t testing.TB, ch clientv3.WatchChan, n int) (list []string) {
	t.Helper()
	for len(list) < n {
		resp, ok := <-ch
		require.NoError(t, resp.Err(), "after %v", list)
		require.True(t, ok, "watch ended after %v", list)
		for _, ev := range resp.Events {
			list = append(list, briefEvent(ev))
		}
	}
	return list
}

func TestWatchOptions(t *testing.T) {
	tests := []struct {
		name string
		key  string
		opts []clientv3.OpOption
		want string
	}{
		{"one key", "a", nil, "PUT a=4@6, DELETE a=@7"},
		{"one key from the start", "a", []clientv3.OpOption{clientv3.WithRev(2)}, "PUT a=1@2, PUT a=2@3, PUT a=4@6, DELETE a=@7"},
		{"prefix", "a", []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithRev(4)}, "PUT ab=x@5, PUT a=4@6, DELETE a=@7"},
		{"range", "a", []clientv3.OpOption{clientv3.WithRange("ab"), clientv3.WithRev(3)}, "PUT a=2@3, PUT a=4@6, DELETE a=@7"},
		{"from key", "ab", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithRev(1)}, "PUT b=3@4, PUT ab=x@5, PUT b=5@8"},
		{"everything", "", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithRev(6)}, "PUT a=4@6, DELETE a=@7, PUT b=5@8"},
		{"previous values", "a", []clientv3.OpOption{clientv3.WithPrevKV(), clientv3.WithRev(2)},
			"PUT a=1@2, PUT a=2@3 was 1, PUT a=4@6 was 2, DELETE a=@7 was 4"},
		{"no puts", "a", []clientv3.OpOption{clientv3.WithFilterPut(), clientv3.WithRev(2)}, "DELETE a=@7"},
		{"no deletes", "a", []clientv3.OpOption{clientv3.WithFilterDelete(), clientv3.WithRev(3)}, "PUT a=2@3, PUT a=4@6"},
		{"later revision", "", []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithRev(7)}, "DELETE a=@7, PUT b=5@8"},
	}
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		put(t, c, "a", "1")
		put(t, c, "a", "2")
		put(t, c, "b", "3")
		put(t, c, "ab", "x")
		watches := make([]clientv3.WatchChan, len(tests))
		for i, tt := range tests {
			watches[i] = c.Watch(ctx, tt.key, append(tt.opts, clientv3.WithCreatedNotify())...)
			resp := <-watches[i]
			require.True(t, resp.Created, "%s: %v", tt.name, resp)
			require.Equal(t, int64(5), resp.Header.Revision, "%s: %v", tt.name, resp)
		}
		put(t, c, "a", "4")
		del(t, c, "a")
		put(t, c, "b", "5")
		for i, tt := range tests {
			want := strings.Split(tt.want, ", ")
			assert.Empty(t, cmp.Diff(want, events(t, watches[i], len(want))), "%s: -want +got", tt.name)
		}
	})
}

func TestWatchRevisionIsOneResponse(t *testing.T) {
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w := c.Watch(ctx, "", clientv3.WithFromKey(), clientv3.WithCreatedNotify())
		<-w
		for range 2 {
			var ops []clientv3.Op
			for i := range 100 {
				ops = append(ops, clientv3.OpPut(fmt.Sprintf("k%02d", i), "v"))
			}
			_, err := c.Txn(ctx).Then(ops...).Commit()
			require.NoError(t, err)
			resp := <-w
			assert.Len(t, resp.Events, 100)
			assert.Equal(t, s.Revision(), resp.Header.Revision)
			// The same from history.
			old := c.Watch(ctx, "", clientv3.WithFromKey(), clientv3.WithRev(s.Revision()))
			assert.Len(t, (<-old).Events, 100)
		}
	})
}

func TestWatchCompacted(t *testing.T) {
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for i := range 5 {
			put(t, c, "a", fmt.Sprint(i))
		}
		del(t, c, "a") // at 7
		_, err := c.Compact(ctx, 7)
		require.NoError(t, err)
		w := c.Watch(ctx, "a", clientv3.WithRev(6))
		resp := <-w
		assert.Equal(t, int64(7), resp.CompactRevision)
		assert.True(t, resp.Canceled, "got %v", resp)
		assert.ErrorIs(t, resp.Err(), rpctypes.ErrCompacted)
		resp, ok := <-w
		assert.False(t, ok, "then got %v", resp)
		// What happened at the compact revision is still there, but for the
		// value before.
		w = c.Watch(ctx, "a", clientv3.WithRev(7), clientv3.WithPrevKV())
		got := events(t, w, 1)
		assert.Equal(t, "DELETE a=@7", got[0], "got %v", got)
	})
}

// TestWatchSuperseded has one revision put and delete a key, which etcd allows
// in nested transactions. Once that revision is the compact one, only the last
// change of it is left.
func TestWatchSuperseded(t *testing.T) {
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		put(t, c, "a", "1")
		nest := func(op clientv3.Op) clientv3.Op { return clientv3.OpTxn(nil, []clientv3.Op{op}, nil) }
		_, err := c.Txn(ctx).Then(nest(clientv3.OpPut("a", "2")), nest(clientv3.OpDelete("a")), nest(clientv3.OpPut("b", ""))).Commit()
		require.NoError(t, err)
		all := []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithRev(3), clientv3.WithPrevKV()}
		want := []string{"PUT a=2@3 was 1", "DELETE a=@3 was 1", "PUT b=@3"}
		assert.Empty(t, cmp.Diff(want, events(t, c.Watch(ctx, "", all...), 3)), "-want +got")
		_, err = c.Compact(ctx, 3)
		require.NoError(t, err)
		want = []string{"DELETE a=@3", "PUT b=@3"}
		assert.Empty(t, cmp.Diff(want, events(t, c.Watch(ctx, "", all...), 2)), "compacted: -want +got")
	})
}

func TestWatchRefused(t *testing.T) {
	eachClient(t, Config{}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		for _, tt := range []struct {
			name string
			opts []clientv3.OpOption
			want string
		}{
			{"empty range", []clientv3.OpOption{clientv3.WithRange("a")}, "mvcc: watcher range is empty"},
			{"negative revision", []clientv3.OpOption{clientv3.WithRev(-1)}, rpctypes.ErrCompacted.Error()},
		} {
			w := c.Watch(context.Background(), "b", tt.opts...)
			resp, ok := <-w
			assert.True(t, ok && resp.Canceled, "%s: %v", tt.name, resp)
			assert.EqualError(t, resp.Err(), tt.want, tt.name)
			_, ok = <-w
			assert.False(t, ok, "%s: did not end", tt.name)
		}
	})
}

func TestWatchEnds(t *testing.T) {
	s := newServer(t, Config{})
	end := map[string]func(c *kubernetes.Client, cancel func()){
		"context": func(_ *kubernetes.Client, cancel func()) { cancel() },
		"client":  func(c *kubernetes.Client, _ func()) { _ = c.Close() },
		"server":  func(*kubernetes.Client, func()) { _ = s.Close() },
	}
	for _, name := range []string{"context", "client", "server"} {
		c, other := s.Client(), s.Client()
		ctx, cancel := context.WithCancel(context.Background())
		w := c.Watch(ctx, "a")
		untouched := other.Watch(context.Background(), "a")
		end[name](c, cancel)
		resp, ok := <-w
		assert.False(t, ok, "%s: got %v", name, resp)
		select {
		case resp, ok := <-untouched:
			assert.Equal(t, "server", name, "%s: another client's watch got %v, %t", name, resp, ok)
		default:
			assert.NotEqual(t, "server", name, "closing the server left a watch")
		}
		cancel()
		_, ok = <-c.Watch(ctx, "a")
		assert.False(t, ok, "%s: a watch could begin", name)
	}
}

// TestSlowWatch has a watch fall behind its buffer. It must get everything
// when it reads on, in order and once.
func TestSlowWatch(t *testing.T) {
	eachClient(t, Config{WatchBuffer: 4}, func(t *testing.T, s *Server, c *kubernetes.Client) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		slow := c.Watch(ctx, "a", clientv3.WithPrevKV(), clientv3.WithCreatedNotify())
		<-slow
		const n = 5000
		for i := range n {
			put(t, c, "a", fmt.Sprint(i))
		}
		got := events(t, slow, n)
		for i, ev := range got {
			want := fmt.Sprintf("PUT a=%d@%d", i, i+2)
			if i > 0 {
				want += fmt.Sprintf(" was %d", i-1)
			}
			require.Equal(t, want, ev, "event %d", i)
		}
		put(t, c, "a", "last")
		got = events(t, slow, 1)
		assert.Equal(t, fmt.Sprintf("PUT a=last@%d was %d", n+2, n-1), got[0], "then got %v", got)
	})
}

// TestSlowWatchIsBounded checks what a watch that its client does not read holds, and that
// it is cancelled when what it did not read is compacted.
func TestSlowWatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{WatchBuffer: 8})
		c := s.Client()
		w := c.Watch(t.Context(), "a")
		const n = 5 * keyspace.BatchRevisions
		for i := range n {
			put(t, c, "a", fmt.Sprint(i))
		}
		synctest.Wait()
		assert.Len(t, w, 8)
		_, err := c.Compact(t.Context(), s.Revision())
		require.NoError(t, err)
		var last clientv3.WatchResponse
		seen := 0
		for resp := range w {
			seen += len(resp.Events)
			last = resp
		}
		assert.Equal(t, s.Revision(), last.CompactRevision, "after %d events the last response was %v", seen, last)
		assert.LessOrEqual(t, seen, 8+keyspace.BatchRevisions, "after %d events the last response was %v", seen, last)
	})
}

func TestRequestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{WatchBuffer: 2})
		c := s.Client()
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(context.Background()))
		defer cancel()
		a, b := c.Watch(ctx, "a"), c.Watch(ctx, "b")
		other := c.Watch(context.Background(), "a") // would be another stream
		put(t, c, "a", "1")
		require.NoError(t, c.RequestProgress(ctx))
		synctest.Wait()
		resp := <-a
		assert.Len(t, resp.Events, 1, "the event comes before the progress, got %v", resp)
		for name, w := range map[string]clientv3.WatchChan{"a": a, "b": b} {
			resp := <-w
			assert.False(t, !resp.IsProgressNotify() || resp.Header.Revision != 2, "%s got %v", name, resp)
		}
		<-other
		assert.Empty(t, other, "progress for another stream")

		// A watch that lags makes the others wait, as in etcd.
		for range 9 {
			put(t, c, "a", "x")
		}
		synctest.Wait()
		require.NoError(t, c.RequestProgress(ctx))
		synctest.Wait()
		assert.Empty(t, b, "progress although a watch of the stream lags")
		events(t, a, 9)
		synctest.Wait()
		require.NoError(t, c.RequestProgress(ctx))
		resp = <-b
		assert.False(t, !resp.IsProgressNotify() || resp.Header.Revision != 11, "got %v", resp)

		// One that waits for a revision to come says nothing about now.
		future := c.Watch(ctx, "a", clientv3.WithRev(20))
		<-a
		require.NoError(t, c.RequestProgress(ctx))
		synctest.Wait()
		assert.Equal(t, 0, len(a)+len(b)+len(future), "progress before the revision a watch begins at")
	})
}

func TestProgressNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{ProgressNotifyInterval: time.Minute})
		c := s.Client()
		w := c.Watch(t.Context(), "a", clientv3.WithProgressNotify())
		put(t, c, "b", "1")
		time.Sleep(59 * time.Second)
		assert.Empty(t, w, "progress too early")
		time.Sleep(2 * time.Second)
		resp := <-w
		assert.False(t, !resp.IsProgressNotify() || resp.Header.Revision != 2, "got %v", resp)
		// Events stand for progress.
		put(t, c, "a", "1")
		events(t, w, 1)
		time.Sleep(time.Minute)
		assert.Empty(t, w, "progress although there were events")
		time.Sleep(time.Minute)
		resp = <-w
		assert.False(t, !resp.IsProgressNotify() || resp.Header.Revision != 3, "got %v", resp)
	})
}

// TestHeadersOfSlowWatches makes watches wait for room. As in etcd, a response that
// waits has the revision up to which its watch has then seen everything, not the
// store's.
func TestHeadersOfSlowWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{WatchBuffer: 1})
		c := s.Client()
		synced := c.Watch(t.Context(), "k")
		for range 2500 {
			put(t, c, "k", "v")
		}
		past := c.Watch(t.Context(), "k", clientv3.WithRev(2))
		synctest.Wait()
		for _, tt := range []struct {
			name string
			ch   clientv3.WatchChan
			want []string
		}{
			{"synced", synced, []string{"1 at 2", "1 at 3", "1000 at 1003", "1000 at 2003", "498 at 2501"}},
			{"past", past, []string{"1000 at 2501", "1000 at 2001", "500 at 2501"}},
		} {
			var got []string
			for range tt.want {
				resp := <-tt.ch
				got = append(got, fmt.Sprintf("%d at %d", len(resp.Events), resp.Header.Revision))
				synctest.Wait()
			}
			assert.True(t, slices.Equal(got, tt.want), "%s: got %q, want %q", tt.name, got, tt.want)
		}
	})
}
