package intercept

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

// source is a store that delivers to one watch.
type source struct {
	clientv3.Watcher
	direct  bool                        // it calls deliver itself
	in      chan clientv3.WatchResponse // otherwise
	over    chan struct{}               // closed when the reader wants no more of in
	deliver func(r clientv3.WatchResponse, done <-chan struct{}) bool
	ended   func()
}

// Close implements clientv3.Watcher.
func (*source) Close() error { return nil }

// Watch implements clientv3.Watcher.
func (s *source) Watch(ctx context.Context, _ string, _ ...clientv3.OpOption) clientv3.WatchChan {
	context.AfterFunc(ctx, func() { close(s.over) })
	return s.in
}

// directSource is a source that delivers by a function.
type directSource struct{ *source }

func (s directSource) WatchFunc(_ context.Context, _ string, deliver func(r clientv3.WatchResponse, done <-chan struct{}) bool, ended func(), _ ...clientv3.OpOption) {
	s.deliver, s.ended = deliver, ended
}

// tell delivers something, as a writer does.
func (s *source) tell(t *testing.T, r clientv3.WatchResponse) {
	t.Helper()
	if s.direct {
		require.True(t, s.deliver(r, nil), "refused")
		return
	}
	select {
	case s.in <- r:
	case <-s.over:
	}
}

func (s *source) end() {
	if s.direct {
		s.ended()
		return
	}
	close(s.in)
}

// puts is a response of some changes.
func puts(names ...string) clientv3.WatchResponse {
	r := clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: 7}}
	for _, name := range names {
		r.Events = append(r.Events, &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte("/registry/pods/" + name), ModRevision: 7}})
	}
	return r
}

// watchTest is a watch of pods, by a watch cache.
type watchTest struct {
	*testing.T
	*source
	set    *fault.Set
	conn   *Connection
	out    clientv3.WatchChan
	cancel context.CancelFunc
}

// onBothSources has a watch of each kind of store, with rules.
func onBothSources(t *testing.T, f func(w *watchTest), rules ...string) {
	t.Helper()
	for _, direct := range []bool{true, false} {
		t.Run(fmt.Sprintf("direct=%t", direct), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := fault.New(fault.Config{})
				src := &source{direct: direct, in: make(chan clientv3.WatchResponse), over: make(chan struct{})}
				inner := clientv3.NewCtxClient(context.Background())
				if inner.Watcher = src; direct {
					inner.Watcher = directSource{src}
				}
				conn := NewConnection()
				conn.Attach(&kubernetes.Client{Client: inner}, edge.NewInjector(set, "a", edge.Effects{}), nil)
				w := &watchTest{T: t, source: src, set: set, conn: conn}
				for _, rule := range rules {
					w.add(rule)
				}
				ctx, cancel := context.WithCancel(ForCache(t.Context()))
				w.cancel = cancel
				w.out = conn.Client(Identity{Resource: "pods", Prefix: "/registry/pods/"}).Watch(ctx, "/registry/pods/", clientv3.WithPrefix())
				f(w)
				cancel()
				assert.NoError(t, conn.Close(context.Background()))
			})
		})
	}
}

// add adds a rule.
func (w *watchTest) add(text string) *fault.Entry {
	w.Helper()
	rule, err := fault.Parse(text, nil)
	require.NoError(w, err)
	added, err := w.set.Add(rule)
	require.NoError(w, err)
	return added[0]
}

// told returns what is in the channel now: the names of each response.
func (w *watchTest) told() (all []string) {
	synctest.Wait()
	for {
		select {
		case r, ok := <-w.out:
			if !ok {
				return append(all, "end")
			}
			name := ""
			for _, event := range r.Events {
				name += string(event.Kv.Key[len("/registry/pods/"):])
			}
			all = append(all, name)
		default:
			return all
		}
		synctest.Wait()
	}
}

// TestStage has some of what comes wait a second, counted from its arrival.
func TestStage(t *testing.T) {
	for rule, want := range map[string][]string{
		"":                                   {"a", "b", "c"},
		"drop cache/pods name=b":             {"a", "c"},
		"drop store/watch-event name=b":      {"a", "c"},
		"duplicate cache/pods name=b":        {"a", "b", "b", "c"},
		"duplicate store/watch-event name=b": {"a", "b", "b", "c"},
		"cancel cache/pods name=b":           {"a", "end"},
		"cancel store/watch-event name=b":    {"a", "end"},
	} {
		for _, delay := range []string{"", "delay store/watch-event by=1s", "delay cache/pods verb=event by=1s", "delay store/watch-event name=a by=1s"} {
			t.Run(rule+", "+delay, func(t *testing.T) {
				rules := slices.DeleteFunc([]string{delay, rule}, func(rule string) bool { return rule == "" })
				onBothSources(t, func(w *watchTest) {
					for _, name := range []string{"a", "b", "c"} {
						w.tell(t, puts(name))
					}
					if delay != "" {
						assert.Empty(w, w.told())
						time.Sleep(time.Second) // a lag, not a brake
					}
					assert.Equal(w, want, w.told())
				}, rules...)
			})
		}
	}
}

// TestStagesAreLags has each event wait at the store and at the cache: two seconds
// for each, and not two more for each that is before it.
func TestStagesAreLags(t *testing.T) {
	onBothSources(t, func(w *watchTest) {
		for i := range 10 {
			w.tell(w.T, puts(fmt.Sprint(i)))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		for i := range 10 {
			assert.Equal(w, []string{fmt.Sprint(i)}, w.told())
			time.Sleep(100 * time.Millisecond)
		}
	}, "delay store/watch-event by=1s", "delay cache/pods verb=event by=1s")
}

// TestStageSplits asks about each event of a response.
func TestStageSplits(t *testing.T) {
	onBothSources(t, func(w *watchTest) {
		w.tell(w.T, puts("a", "b", "c"))
		assert.Equal(w, []string{"a", "c"}, w.told())
		w.tell(w.T, puts("d", "e"))
		assert.Equal(w, []string{"de"}, w.told())
	}, "drop cache/pods name=b")
}

// TestStageKeepsOrder holds one event, and with it whatever comes later.
func TestStageKeepsOrder(t *testing.T) {
	for _, rule := range []string{"hold cache/pods name=b", "hold store/watch-event name=b"} {
		onBothSources(t, func(w *watchTest) {
			for _, name := range []string{"a", "b", "c"} {
				w.tell(w.T, puts(name))
			}
			progress := clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: 8}}
			w.tell(w.T, progress)
			assert.Equal(w, []string{"a"}, w.told())
			w.set.Rules()[0].Gate().Release(1)
			assert.Equal(w, []string{"b", "c", ""}, w.told())
			w.tell(w.T, puts("d"))
			w.source.end()
			assert.Equal(w, []string{"d", "end"}, w.told())
		}, rule)
	}
}

// TestStagePartition keeps what comes until the network is whole again, and asks the
// rules then.
func TestStagePartition(t *testing.T) {
	onBothSources(t, func(w *watchTest) {
		w.tell(w.T, puts("a"))
		assert.Equal(w, []string{"a"}, w.told())
		cut := w.add("partition store server=a")
		w.tell(w.T, puts("b"))
		w.tell(w.T, puts("c"))
		time.Sleep(time.Hour) // there is no end to its patience
		assert.Empty(w, w.told())
		cut.Remove()
		assert.Equal(w, []string{"c"}, w.told())
		time.Sleep(time.Second)
		w.tell(w.T, puts("d"))
		assert.Equal(w, []string{"d"}, w.told())
	}, "drop cache/pods name=b")
}

// TestStageEnds ends a watch at each place where it can be, and leaves no goroutine behind:
// onBothSources fails otherwise.
func TestStageEnds(t *testing.T) {
	for name, test := range map[string]struct {
		rule string
		fill []string
	}{
		"idle":              {},
		"held":              {"hold store/watch-event", []string{"a"}},
		"held, more behind": {"hold cache/pods", []string{"a", "b", "c"}},
		"partitioned":       {"partition store", []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			ends := map[string]func(w *watchTest){
				"cancelled": func(w *watchTest) {
					w.cancel()
					if w.source.direct {
						w.source.end() // as a store does when the context ends
					}
				},
				"broken": func(w *watchTest) {
					assert.NoError(w, w.conn.Break(w.Context()))
					if w.source.end(); len(w.set.Rules()) > 0 {
						w.set.Rules()[0].Remove() // as the end of the server does
					}
				},
			}
			for how, end := range ends {
				t.Run(how, func(t *testing.T) {
					onBothSources(t, func(w *watchTest) {
						if test.rule != "" {
							w.add(test.rule)
						}
						for _, name := range test.fill {
							w.tell(w.T, puts(name))
						}
						assert.Empty(w, w.told())
						end(w)
						synctest.Wait()
						told := w.told()
						require.NotEmpty(w, told)
						assert.Equal(w, "end", told[len(told)-1])
					})
				})
			}
		})
	}
}

// TestStageRefuses has a slow receiver keep back a store that delivers by itself,
// and takes what comes again.
func TestStageRefuses(t *testing.T) {
	onBothSources(t, func(w *watchTest) {
		if !w.source.direct {
			return
		}
		for range watchBuffer {
			w.tell(w.T, puts("a"))
		}
		assert.False(w, w.deliver(puts("b"), nil))
		done := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(done) })
		assert.False(w, w.deliver(puts("b"), done), "there is no room")
		assert.Len(w, w.told(), watchBuffer)
		assert.True(w, w.deliver(puts("b"), nil))
		assert.Equal(w, []string{"b"}, w.told())
	})
}
