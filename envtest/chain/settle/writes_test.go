package settle_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/chain/reststorage/reststoragetest"
	"snowglobe.test/envtest/chain/settle"
	"snowglobe.test/envtest/fault"
)

// TestAwait waits for the watch cache and for an informer, but for neither where a rule may hold up
// their events, and for nothing that has ended.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		var server *settle.Server
		awaits := time.Duration(-1)
		var delay time.Duration // of the events of the watch cache
		rest := reststoragetest.New(t, store, reststorage.Config{
			InterceptCache: func(store storage.Interface, _ schema.GroupResource) (storage.Interface, func()) {
				return delayed{store, &delay}, func() {}
			},
			AfterWrite: func(ctx context.Context, resource *reststorage.Resource, revision uint64) {
				began := time.Now()
				server.Await(ctx, resource, revision)
				awaits = time.Since(began)
			},
		})
		stored, _ := reststoragetest.Add(t, rest, store, pods)
		client := fake.NewClientset()
		factory := informers.NewSharedInformerFactory(client, 0)
		informer := factory.Core().V1().Pods().Informer()
		started, stop := context.WithCancel(t.Context())
		defer stop()
		factory.StartWithContext(started)
		factory.WaitForCacheSyncWithContext(t.Context())
		faults := fault.New(fault.Config{})
		server = &settle.Server{
			Name: "apiserver-0", Storage: rest, Informers: []settle.StartedInformers{settle.Started(factory)}, Faults: faults,
		}
		time.Sleep(time.Second)
		n := 0
		// write creates a Pod, which the informer sees after a while, and returns how long that took.
		write := func(sees time.Duration) time.Duration {
			n++
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: strconv.Itoa(n)}}
			key, err := pods.Key(pod)
			require.NoError(t, err)
			revision, err := rest.Revision(t.Context())
			require.NoError(t, err)
			seen := pod.DeepCopy()
			seen.ResourceVersion = strconv.FormatInt(revision+1, 10)
			time.AfterFunc(sees, func() { _ = client.Tracker().Add(seen) })
			require.NoError(t, stored.Create(t.Context(), key, pod, pod, 0))
			require.Equal(t, seen.ResourceVersion, pod.ResourceVersion)
			took := awaits
			time.Sleep(time.Minute)
			return took
		}
		assert.Equal(t, time.Second, write(time.Second), "an informer that sees the write after a second")
		assert.Equal(t, 3*time.Second, write(20*time.Second), "one that sees it late")
		delay = 2 * time.Second
		assert.Equal(t, delay, write(time.Second), "a watch cache that sees the write after two seconds")
		delay = 0
		rules, err := faults.Add(fault.Rule{
			Action: fault.Action{Kind: fault.Hold}, Match: fault.Match{Point: "cache/pods", Server: "apiserver-0"}, Optional: true,
		})
		require.NoError(t, err)
		assert.Zero(t, write(time.Second), "beside a rule about the cache")
		rules[0].Remove()
		stop()
		synctest.Wait()
		require.True(t, informer.IsStopped())
		assert.Zero(t, write(time.Second), "without an informer that runs")
	})
}

// delayed is a store whose watches take some time for each event.
type delayed struct {
	storage.Interface
	by *time.Duration
}

// Watch implements storage.Interface.
func (d delayed) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	inner, err := d.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return watch.Filter(inner, func(event watch.Event) (watch.Event, bool) {
		time.Sleep(*d.by)
		return event, true
	}), nil
}
