package intercept_test

import (
	"context"
	"net"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/storage/intercept"
	"snowglobe.test/envtest/storage/memory"
)

// server is what an API server has of its store.
type server struct {
	*testing.T
	set    *fault.Set
	store  *memory.Store
	conn   *intercept.Connection
	client *kubernetes.Client // that rules reach
	direct *kubernetes.Client // that none but a partition does
	effect func(context.Context) error
}

// connected runs f with a server "a" that is connected to its store.
func connected(t *testing.T, writes intercept.Writes, f func(s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &server{T: t, set: fault.New(fault.Config{}), store: memory.New("connected"),
			conn: intercept.NewConnection()}
		require.NoError(t, s.store.Start(t.Context()))
		client, err := s.store.Client()
		require.NoError(t, err)
		injector := edge.NewInjector(s.set, "a",
			edge.Effects{Compact: func(ctx context.Context) error { return s.effect(ctx) }})
		s.conn.Attach(client, injector, writes)
		s.client, s.direct = s.conn.Client(intercept.Identity{Resource: "pods",
			Prefix: "/registry/pods/"}), s.conn.Direct()
		f(s)
		injector.End()
		require.NoError(t, s.conn.Close(context.Background()))
		require.NoError(t, s.store.Stop(context.Background()))
	})
}

// add adds a rule.
func (s *server) add(text string) *fault.Entry {
	s.Helper()
	rule, err := fault.Parse(text, nil)
	require.NoError(s, err)
	added, err := s.set.Add(rule)
	require.NoError(s, err)
	return added[0]
}

// put writes a new key.
func put(ctx context.Context, client *kubernetes.Client, key string) error {
	_, err := client.Kubernetes.OptimisticPut(ctx, key, []byte("x"), 0, kubernetes.PutOptions{})
	return err
}

// calls are all that a partition makes wait.
var calls = map[string]func(context.Context, *kubernetes.Client) error{
	"Get": func(ctx context.Context, c *kubernetes.Client) error {
		return second(c.Kubernetes.Get(ctx, "a", kubernetes.GetOptions{}))
	},
	"List": func(ctx context.Context, c *kubernetes.Client) error {
		return second(c.Kubernetes.List(ctx, "a", kubernetes.ListOptions{}))
	},
	"Count": func(ctx context.Context, c *kubernetes.Client) error {
		return second(c.Kubernetes.Count(ctx, "a", kubernetes.CountOptions{}))
	},
	"OptimisticPut": func(ctx context.Context, c *kubernetes.Client) error { return put(ctx, c, "a") },
	"OptimisticDelete": func(ctx context.Context, c *kubernetes.Client) error {
		return second(c.Kubernetes.OptimisticDelete(ctx, "a", 1, kubernetes.DeleteOptions{}))
	},
	"KV.Get": func(ctx context.Context, c *kubernetes.Client) error { return second(c.KV.Get(ctx, "a")) },
	"KV.GetStream": func(ctx context.Context, c *kubernetes.Client) error {
		parts, err := c.KV.GetStream(ctx, "a")
		if err != nil {
			return err
		}
		for part := range parts {
			err = part.Err()
		}
		return err
	},
	"KV.Put":     func(ctx context.Context, c *kubernetes.Client) error { return second(c.KV.Put(ctx, "a", "x")) },
	"KV.Delete":  func(ctx context.Context, c *kubernetes.Client) error { return second(c.KV.Delete(ctx, "a")) },
	"KV.Compact": func(ctx context.Context, c *kubernetes.Client) error { return second(c.KV.Compact(ctx, 1)) },
	"KV.Do": func(ctx context.Context, c *kubernetes.Client) error {
		return second(c.KV.Do(ctx, clientv3.OpGet("a")))
	},
	"Txn": func(ctx context.Context, c *kubernetes.Client) error {
		return second(c.KV.Txn(ctx).Then(clientv3.OpGet("a")).Commit())
	},
	"Grant": func(ctx context.Context, c *kubernetes.Client) error { return second(c.Lease.Grant(ctx, 100)) },
	"Revoke": func(ctx context.Context, c *kubernetes.Client) error {
		lease, err := c.Lease.Grant(ctx, 100)
		if err == nil {
			_, err = c.Lease.Revoke(ctx, lease.ID)
		}
		return err
	},
}

// TestPartition has every call wait until the network is whole again, or until it
// has lost its patience, and fail when the connection is broken.
func TestPartition(t *testing.T) {
	for name, call := range calls {
		for kind, client := range map[string]func(*server) *kubernetes.Client{
			"client": func(s *server) *kubernetes.Client { return s.client },
			"direct": func(s *server) *kubernetes.Client { return s.direct },
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				connected(t, nil, func(s *server) {
					s.add("partition store server=b optional")
					s.add("partition store server=a for=10s")
					assert.True(s, s.conn.Partitioned())
					began := time.Now()
					err := call(s.Context(), client(s))
					assert.NotEqual(s, codes.Unavailable, status.Code(err), "%v", err)
					assert.Equal(s, 10*time.Second, time.Since(began))
					assert.False(s, s.conn.Partitioned())
					assert.NoError(s, s.conn.Err())

					s.add("partition store server=a")
					began = time.Now()
					err = call(s.Context(), client(s))
					assert.Equal(s, codes.Unavailable, status.Code(err), "%v", err)
					assert.ErrorContains(s, err, "keepalive ping failed to receive ACK within timeout")
					assert.Equal(s, s.conn.Err(), err)
					assert.Equal(s, 40*time.Second, time.Since(began))

					ctx, cancel := context.WithTimeout(s.Context(), time.Second)
					defer cancel()
					assert.ErrorIs(s, call(ctx, client(s)), context.DeadlineExceeded)

					assert.NoError(s, s.conn.Break(s.Context()))
					assert.ErrorIs(s, call(s.Context(), client(s)), intercept.ErrBroken)
					assert.ErrorIs(s, s.conn.Err(), intercept.ErrBroken)
					assert.False(s, s.conn.Partitioned(), "nothing heals any more")
				})
			})
		}
	}
}

// TestPartitionOfWatches keeps what watches would be told, those included that begin
// meanwhile, and loses what asks how far they are.
func TestPartitionOfWatches(t *testing.T) {
	connected(t, nil, func(s *server) {
		other, err := s.store.Client()
		require.NoError(s, err)
		before := s.client.Watch(s.Context(), "/registry/pods/", clientv3.WithPrefix())
		cut := s.add("partition store")
		during := s.direct.Watch(s.Context(), "/registry/pods/", clientv3.WithPrefix(), clientv3.WithRev(1))
		require.NoError(s, put(s.Context(), other, "/registry/pods/a"))
		require.NoError(s, s.client.RequestProgress(s.Context()))
		time.Sleep(time.Hour)
		assert.Empty(s, before)
		assert.Empty(s, during)
		cut.Remove()
		for _, watch := range []clientv3.WatchChan{before, during} {
			r := <-watch
			if assert.Len(s, r.Events, 1) {
				assert.Equal(s, "/registry/pods/a", string(r.Events[0].Kv.Key))
			}
		}
		synctest.Wait()
		assert.Empty(s, before, "progress that was asked for when nothing got through")
		require.NoError(s, s.client.RequestProgress(s.Context()))
		assert.True(s, new(<-before).IsProgressNotify())
		require.NoError(s, s.conn.Break(s.Context()))
		for _, watch := range []clientv3.WatchChan{before, during} {
			_, more := <-watch
			assert.False(s, more)
		}
		_, more := <-s.client.Watch(s.Context(), "/registry/pods/")
		assert.False(s, more)
		assert.ErrorIs(s, s.client.RequestProgress(s.Context()), intercept.ErrBroken)
	})
}

// TestDialer breaks off what was dialed, and lets no caller dial.
func TestDialer(t *testing.T) {
	connected(t, nil, func(s *server) {
		dial := s.conn.Dialer(s.store.Endpoints().Dial)
		conn, err := dial(s.Context(), "", "")
		require.NoError(s, err)
		cut := s.add("partition store for=5s")
		_, err = conn.Write([]byte("x"))
		require.ErrorIs(s, err, net.ErrClosed)
		began := time.Now()
		conn, err = dial(s.Context(), "", "")
		require.NoError(s, err)
		assert.Equal(s, 5*time.Second, time.Since(began))
		cut.Remove()
		s.add("partition store")
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		_, err = dial(ctx, "", "")
		assert.ErrorContains(s, err, "no route to host")
		require.NoError(s, s.conn.Break(s.Context()))
		_, err = dial(s.Context(), "", "")
		assert.ErrorContains(s, err, "no route to host")
		_, err = conn.Write([]byte("x"))
		assert.ErrorIs(s, err, net.ErrClosed)
	})
}

// slowKV is a store that answers one read only when it is told to.
type slowKV struct {
	clientv3.KV
	goOn chan struct{}
}

func (k slowKV) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	<-k.goOn
	return &clientv3.GetResponse{}, nil
}

// TestBreakWaits for what is under way, as long as it may.
func TestBreakWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, goOn := clientv3.NewCtxClient(context.Background()), make(chan struct{})
		inner.KV = slowKV{goOn: goOn}
		conn := intercept.NewConnection()
		conn.Attach(&kubernetes.Client{Client: inner}, nil, nil)
		done := make(chan error, 1)
		go func() {
			_, err := conn.Direct().KV.Get(t.Context(), "a")
			done <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := conn.Break(ctx)
		assert.ErrorContains(t, err, "break the connection to the store: an operation is still under way: context "+
			"deadline exceeded")
		assert.ErrorContains(t, err, "in intercept_test.slowKV.Get (connection_test.go:", "who it is")
		time.AfterFunc(time.Second, func() { close(goOn) })
		began := time.Now()
		assert.NoError(t, conn.Break(t.Context()))
		assert.Equal(t, time.Second, time.Since(began))
		assert.ErrorIs(t, <-done, intercept.ErrBroken, "no caller is left to hear the answer")
		assert.NoError(t, conn.Close(t.Context()))
		assert.NoError(t, conn.Close(t.Context()), "twice")
	})
	assert.NoError(t, intercept.NewConnection().Break(t.Context()), "before there is a client")
	assert.NoError(t, intercept.NewConnection().Close(t.Context()))
}

// countingKV is a store that knows how many reads are under way.
type countingKV struct {
	clientv3.KV
	underWay atomic.Int64
}

func (k *countingKV) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	k.underWay.Add(1)
	defer k.underWay.Add(-1)
	runtime.Gosched()
	return &clientv3.GetResponse{}, nil
}

// TestBreakIsFinal breaks connections that are read by, and cut off and healed again:
// when Break returns, nothing is under way any more.
func TestBreakIsFinal(t *testing.T) {
	for range 100 {
		inner, store := clientv3.NewCtxClient(context.Background()), &countingKV{}
		inner.KV = store
		set, conn := fault.New(fault.Config{}), intercept.NewConnection()
		conn.Attach(&kubernetes.Client{Client: inner}, edge.NewInjector(set, "a", edge.Effects{}), nil)
		var users sync.WaitGroup
		for range 4 {
			users.Go(func() {
				for {
					if _, err := conn.Direct().KV.Get(t.Context(), "a"); err != nil {
						assert.ErrorIs(t, err, intercept.ErrBroken)
						return
					}
				}
			})
		}
		for range 5 {
			cut, err := set.Inject("partition store")
			require.NoError(t, err)
			cut.Remove()
		}
		require.NoError(t, conn.Break(t.Context()))
		assert.Zero(t, store.underWay.Load())
		users.Wait()
		assert.Zero(t, store.underWay.Load())
		require.NoError(t, conn.Close(t.Context()))
	}
}

// TestCloseIsBounded has a watch wait for something that does not end with it.
func TestCloseIsBounded(t *testing.T) {
	connected(t, nil, func(s *server) {
		goOn := make(chan struct{})
		s.effect = func(context.Context) error {
			<-goOn
			return nil
		}
		s.add("compact store/watch-event")
		s.client.Watch(s.Context(), "/registry/pods/", clientv3.WithPrefix())
		require.NoError(s, put(s.Context(), s.client, "/registry/pods/a"))
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		err := s.conn.Close(ctx)
		assert.ErrorContains(s, err, "close the connection to the store: a watch has not ended: context deadline "+
			"exceeded")
		assert.ErrorContains(s, err, "in intercept_test.TestCloseIsBounded", "who it is")
		close(goOn)
	})
}

// noted are the writes that a watcher was told of.
type noted []string

func (n *noted) Written(_ context.Context, key string, _, _ int64) { *n = append(*n, "put "+key) }
func (n *noted) Deleted(key string, _ int64)                       { *n = append(*n, "delete "+key) }

// TestWrites tells of writes that succeed, of whatever client, and of no other.
func TestWrites(t *testing.T) {
	var writes noted
	connected(t, &writes, func(s *server) {
		s.add("fail store/put name=failed with=no-leader")
		s.add("lose-reply store/put name=lost with=no-leader")
		for _, key := range []string{"failed", "lost", "ok", "ok"} {
			_ = put(s.Context(), s.client, "/registry/pods/"+key)
		}
		require.NoError(s, put(s.Context(), s.direct, "direct"))
		for _, revision := range []int64{1, 4} {
			_, err := s.direct.Kubernetes.OptimisticDelete(s.Context(), "direct", revision, kubernetes.DeleteOptions{})
			require.NoError(s, err)
		}
	})
	assert.Equal(t, noted{"put /registry/pods/lost", "put /registry/pods/ok", "put direct", "delete direct"}, writes)
}

// TestIdleWatchesHaveNoGoroutine begins watches, and ends them.
func TestIdleWatchesHaveNoGoroutine(t *testing.T) {
	connected(t, nil, func(s *server) {
		s.add("hold store/watch-event name=held")
		count := goroutines()
		ctx, cancel := context.WithCancel(intercept.ForCache(s.Context()))
		watch := s.client.Watch(ctx, "/registry/pods/", clientv3.WithPrefix())
		for range 100 {
			s.client.Watch(ctx, "/registry/pods/", clientv3.WithPrefix())
		}
		require.NoError(s, put(s.Context(), s.client, "/registry/pods/a"))
		assert.Len(s, (<-watch).Events, 1)
		synctest.Wait()
		assert.Equal(s, count, goroutines(), "nothing has to wait")
		require.NoError(s, put(s.Context(), s.client, "/registry/pods/held"))
		synctest.Wait()
		assert.Equal(s, count+101, goroutines(), "each has something that waits")
		s.set.Rules()[0].Remove()
		synctest.Wait()
		assert.Equal(s, count, goroutines(), "nothing has to wait any more")
		cancel()
	})
}

// goroutines is how many the package has.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return strings.Count(string(stacks), "created by snowglobe.test/envtest/storage/intercept.") +
		strings.Count(string(stacks), "storage/intercept.(*stage).run(") // which a WaitGroup creates
}

// TestGoroutinesAreTheServers writes, as another client, what a watch of the server has
// to wait for: the goroutine is the server's, by the label that tells whose it is.
func TestGoroutinesAreTheServers(t *testing.T) {
	connected(t, nil, func(s *server) {
		inner, err := s.store.Client()
		require.NoError(s, err)
		conn := intercept.NewConnection()
		pprof.Do(s.Context(), pprof.Labels("of", "the server"), func(context.Context) {
			conn.Attach(inner, edge.NewInjector(s.set, "b", edge.Effects{}), nil)
		})
		conn.Client(intercept.Identity{Resource: "pods", Prefix: "/registry/pods/"}).
			Watch(s.Context(), "/registry/pods/", clientv3.WithPrefix())
		s.add("hold store/watch-event")
		pprof.Do(s.Context(), pprof.Labels("of", "a writer"), func(ctx context.Context) {
			require.NoError(s, put(ctx, s.direct, "/registry/pods/a"))
		})
		synctest.Wait()
		var profile strings.Builder
		require.NoError(s, pprof.Lookup("goroutine").WriteTo(&profile, 1))
		var labels []string
		for stack := range strings.SplitSeq(profile.String(), "\n\n") {
			if strings.Contains(stack, "(*stage).run+") {
				_, after, _ := strings.Cut(stack, "# labels: ")
				label, _, _ := strings.Cut(after, "\n")
				labels = append(labels, label)
			}
		}
		assert.Equal(s, []string{`{"of":"the server"}`}, labels)
		s.set.Rules()[0].Remove()
		require.NoError(s, conn.Close(context.Background()))
	})
}
