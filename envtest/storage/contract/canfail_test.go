package contract

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/memory"
)

// faultVariable names the fault in the environment of the processes that TestCanFail
// starts.
const faultVariable = "SNOWGLOBE_CONTRACT_FAULT"

// fault is a way to break a store, and the cases that must notice.
type fault struct {
	breaks func(*kubernetes.Client)
	// on are the cases to run, without the store's name; all must fail.
	on []string
}

func faults() map[string]fault {
	return map[string]fault{
		"none": {func(*kubernetes.Client) {}, nil},
		"every second write is acknowledged and lost": {
			func(c *kubernetes.Client) { c.Kubernetes = &lossy{Interface: c.Kubernetes} },
			[]string{"etcd3/GetListRecursivePrefix", "etcd3/ListContinuation", "cacher/GetListRecursivePrefix", "cacher/ListContinuation"},
		},
		"writes ignore what is there": {
			func(c *kubernetes.Client) { c.Kubernetes = &unconditional{c.Kubernetes, c.KV} },
			[]string{"etcd3/CreateWithKeyExist", "etcd3/GuaranteedUpdateWithConflict", "cacher/CreateWithKeyExist"},
		},
		"reads are of the first revision": {
			func(c *kubernetes.Client) { c.Kubernetes = &stale{c.Kubernetes} },
			[]string{"etcd3/Get", "etcd3/GetListNonRecursive", "cacher/Get"},
		},
		"a watch has every event twice": {
			func(c *kubernetes.Client) { c.Watcher = &duplicating{c.Watcher} },
			[]string{"etcd3/Watch", "etcd3/ClusterScopedWatch", "etcd3/WatchSemantics"},
		},
		"a watch has no previous values": {
			func(c *kubernetes.Client) { c.Watcher = &withoutPrevKV{c.Watcher} },
			[]string{"etcd3/DeleteTriggerWatch", "etcd3/WatchDeleteEventObjectHaveLatestRV"},
		},
	}
}

// TestCanFail runs parts of the contract on broken stores, each in a process of its
// own, where they must fail; and the same parts on a correct store, where none may.
func TestCanFail(t *testing.T) {
	if name, ok := os.LookupEnv(faultVariable); ok {
		runFault(t, faults()[name])
		return
	}
	all := faults()
	for name, f := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed, output := failures(t, name)
			for _, c := range f.on {
				assert.Contains(t, failed, c, "it must fail when %s:\n%s", name, output)
			}
			if name == "none" {
				assert.Empty(t, failed, output)
			}
		})
	}
}

// runFault runs the cases of one fault; without a fault, the cases of all faults.
func runFault(t *testing.T, f fault) {
	on := f.on
	if on == nil {
		for _, other := range faults() {
			on = append(on, other.on...)
		}
	}
	open := each(func(t *testing.T) storage.Backend {
		return memory.New(regexp.MustCompile(`\W`).ReplaceAllString(t.Name(), "-"))
	}, func(store storage.Backend) (*kubernetes.Client, error) {
		client, err := store.Client()
		if err == nil {
			f.breaks(client)
		}
		return client, err
	})
	cases := slices.DeleteFunc(casesOn("store", open), func(c testCase) bool {
		return !slices.Contains(on, strings.TrimPrefix(c.name, "store/")) || len(nonDefault(c.gates)) > 0
	})
	runCases(t, cases)
}

// failures runs the cases of a fault in a process of its own and lists those that
// failed.
func failures(t *testing.T, name string) (cases []string, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	test := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestCanFail$", "-test.v")
	test.Env = append(os.Environ(), faultVariable+"="+name)
	out, err := test.CombinedOutput()
	if name != "none" {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	for _, found := range regexp.MustCompile(`--- FAIL: TestCanFail/defaults/store/(\w+/\w+) `).FindAllSubmatch(out, -1) {
		cases = append(cases, string(found[1]))
	}
	return cases, string(out)
}

// lossy acknowledges every second write and drops it.
type lossy struct {
	kubernetes.Interface
	writes atomic.Int64
}

// OptimisticPut implements kubernetes.Interface.
func (l *lossy) OptimisticPut(ctx context.Context, key string, value []byte, revision int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	if l.writes.Add(1)%2 == 0 {
		return kubernetes.PutResponse{Succeeded: true, Revision: revision + 1}, nil
	}
	return l.Interface.OptimisticPut(ctx, key, value, revision, opts)
}

// unconditional writes without comparing the revision.
type unconditional struct {
	kubernetes.Interface
	kv clientv3.KV
}

// OptimisticPut implements kubernetes.Interface.
func (c *unconditional) OptimisticPut(ctx context.Context, key string, value []byte, _ int64, opts kubernetes.PutOptions) (kubernetes.PutResponse, error) {
	put, err := c.kv.Put(ctx, key, string(value), clientv3.WithLease(opts.LeaseID))
	if err != nil {
		return kubernetes.PutResponse{}, err
	}
	return kubernetes.PutResponse{Succeeded: true, Revision: put.Header.Revision}, nil
}

// stale reads at the first revision, where the store was empty.
type stale struct{ kubernetes.Interface }

// Get implements kubernetes.Interface.
func (s *stale) Get(ctx context.Context, key string, opts kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	opts.Revision = 1
	return s.Interface.Get(ctx, key, opts)
}

// List implements kubernetes.Interface.
func (s *stale) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	opts.Revision = 1
	return s.Interface.List(ctx, prefix, opts)
}

// duplicating watches deliver every event twice.
type duplicating struct{ clientv3.Watcher }

// Watch implements clientv3.Watcher.
func (s *duplicating) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	return rewrite(ctx, s.Watcher.Watch(ctx, key, opts...), func(events []*clientv3.Event) []*clientv3.Event {
		return append(slices.Clone(events), events...)
	})
}

// withoutPrevKV watches omit the previous values.
type withoutPrevKV struct{ clientv3.Watcher }

// Watch implements clientv3.Watcher.
func (a *withoutPrevKV) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	return rewrite(ctx, a.Watcher.Watch(ctx, key, opts...), func(events []*clientv3.Event) []*clientv3.Event {
		changed := make([]*clientv3.Event, len(events))
		for i, event := range events {
			changed[i] = &clientv3.Event{Type: event.Type, Kv: event.Kv}
		}
		return changed
	})
}

// rewrite changes the events of a watch.
func rewrite(ctx context.Context, from clientv3.WatchChan, change func([]*clientv3.Event) []*clientv3.Event) clientv3.WatchChan {
	to := make(chan clientv3.WatchResponse)
	go func() {
		defer close(to)
		for resp := range from {
			resp.Events = change(resp.Events)
			select {
			case to <- resp:
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}
