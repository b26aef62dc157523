package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
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
		if !ok || resp.Err() != nil {
			t.Fatalf("watch ended after %v: open %t, %v", list, ok, resp.Err())
		}
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
			if resp := <-watches[i]; !resp.Created || resp.Header.Revision != 5 {
				t.Fatalf("%s: %v", tt.name, resp)
			}
		}
		put(t, c, "a", "4")
		del(t, c, "a")
		put(t, c, "b", "5")
		for i, tt := range tests {
			want := strings.Split(tt.want, ", ")
			if diff := cmp.Diff(want, events(t, watches[i], len(want))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tt.name, diff)
			}
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
			if _, err := c.Txn(ctx).Then(ops...).Commit(); err != nil {
				t.Fatal(err)
			}
			if resp := <-w; len(resp.Events) != 100 || resp.Header.Revision != s.Revision() {
				t.Errorf("%d events at %d", len(resp.Events), resp.Header.Revision)
			}
			// The same from history.
			old := c.Watch(ctx, "", clientv3.WithFromKey(), clientv3.WithRev(s.Revision()))
			if resp := <-old; len(resp.Events) != 100 {
				t.Errorf("%d events from history", len(resp.Events))
			}
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
		if _, err := c.Compact(ctx, 7); err != nil {
			t.Fatal(err)
		}
		w := c.Watch(ctx, "a", clientv3.WithRev(6))
		resp := <-w
		if resp.CompactRevision != 7 || !resp.Canceled || !errors.Is(resp.Err(), rpctypes.ErrCompacted) {
			t.Errorf("got %v, %v", resp, resp.Err())
		}
		if resp, ok := <-w; ok {
			t.Errorf("then got %v", resp)
		}
		// What happened at the compact revision is still there, but for the
		// value before.
		w = c.Watch(ctx, "a", clientv3.WithRev(7), clientv3.WithPrevKV())
		if got := events(t, w, 1); got[0] != "DELETE a=@7" {
			t.Errorf("got %v", got)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		all := []clientv3.OpOption{clientv3.WithFromKey(), clientv3.WithRev(3), clientv3.WithPrevKV()}
		want := []string{"PUT a=2@3 was 1", "DELETE a=@3 was 1", "PUT b=@3"}
		if diff := cmp.Diff(want, events(t, c.Watch(ctx, "", all...), 3)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if _, err := c.Compact(ctx, 3); err != nil {
			t.Fatal(err)
		}
		want = []string{"DELETE a=@3", "PUT b=@3"}
		if diff := cmp.Diff(want, events(t, c.Watch(ctx, "", all...), 2)); diff != "" {
			t.Errorf("compacted: -want +got:\n%s", diff)
		}
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
			if !ok || !resp.Canceled || resp.Err() == nil || resp.Err().Error() != tt.want {
				t.Errorf("%s: %v, %v", tt.name, resp, resp.Err())
			}
			if _, ok := <-w; ok {
				t.Errorf("%s: did not end", tt.name)
			}
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
		if resp, ok := <-w; ok {
			t.Errorf("%s: got %v", name, resp)
		}
		select {
		case resp, ok := <-untouched:
			if name != "server" {
				t.Errorf("%s: another client's watch got %v, %t", name, resp, ok)
			}
		default:
			if name == "server" {
				t.Errorf("closing the server left a watch")
			}
		}
		cancel()
		if _, ok := <-c.Watch(ctx, "a"); ok {
			t.Errorf("%s: a watch could begin", name)
		}
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
			if ev != want {
				t.Fatalf("event %d is %q, want %q", i, ev, want)
			}
		}
		put(t, c, "a", "last")
		if got := events(t, slow, 1); got[0] != fmt.Sprintf("PUT a=last@%d was %d", n+2, n-1) {
			t.Errorf("then got %v", got)
		}
	})
}

// TestSlowWatchIsBounded checks what a watch that nobody reads holds, and that
// it is cancelled when what it did not read is compacted.
func TestSlowWatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{WatchBuffer: 8})
		c := s.Client()
		w := c.Watch(t.Context(), "a")
		const n = 5 * batchRevisions
		for i := range n {
			put(t, c, "a", fmt.Sprint(i))
		}
		synctest.Wait()
		if len(w) != 8 {
			t.Errorf("%d responses wait, want 8", len(w))
		}
		if _, err := c.Compact(t.Context(), s.Revision()); err != nil {
			t.Fatal(err)
		}
		var last clientv3.WatchResponse
		seen := 0
		for resp := range w {
			seen += len(resp.Events)
			last = resp
		}
		if last.CompactRevision != s.Revision() || seen > 8+batchRevisions {
			t.Errorf("after %d events the last response was %v", seen, last)
		}
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
		if err := c.RequestProgress(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if resp := <-a; len(resp.Events) != 1 {
			t.Errorf("the event comes before the progress, got %v", resp)
		}
		for name, w := range map[string]clientv3.WatchChan{"a": a, "b": b} {
			if resp := <-w; !resp.IsProgressNotify() || resp.Header.Revision != 2 {
				t.Errorf("%s got %v", name, resp)
			}
		}
		<-other
		if len(other) != 0 {
			t.Error("progress for another stream")
		}

		// A watch that lags makes the others wait, as in etcd.
		for range 9 {
			put(t, c, "a", "x")
		}
		synctest.Wait()
		if err := c.RequestProgress(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(b) != 0 {
			t.Error("progress although a watch of the stream lags")
		}
		events(t, a, 9)
		synctest.Wait()
		if err := c.RequestProgress(ctx); err != nil {
			t.Fatal(err)
		}
		if resp := <-b; !resp.IsProgressNotify() || resp.Header.Revision != 11 {
			t.Errorf("got %v", resp)
		}

		// One that waits for a revision to come says nothing about now.
		future := c.Watch(ctx, "a", clientv3.WithRev(20))
		<-a
		if err := c.RequestProgress(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(a)+len(b)+len(future) != 0 {
			t.Error("progress before the revision a watch begins at")
		}
	})
}

func TestProgressNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, Config{ProgressNotifyInterval: time.Minute})
		c := s.Client()
		w := c.Watch(t.Context(), "a", clientv3.WithProgressNotify())
		put(t, c, "b", "1")
		time.Sleep(59 * time.Second)
		if len(w) != 0 {
			t.Error("progress too early")
		}
		time.Sleep(2 * time.Second)
		if resp := <-w; !resp.IsProgressNotify() || resp.Header.Revision != 2 {
			t.Errorf("got %v", resp)
		}
		// Events stand for progress.
		put(t, c, "a", "1")
		events(t, w, 1)
		time.Sleep(time.Minute)
		if len(w) != 0 {
			t.Error("progress although there were events")
		}
		time.Sleep(time.Minute)
		if resp := <-w; !resp.IsProgressNotify() || resp.Header.Revision != 3 {
			t.Errorf("got %v", resp)
		}
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
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
			}
		}
	})
}
