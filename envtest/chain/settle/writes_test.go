package settle_test

import (
	"bytes"
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
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/chain/reststorage/reststoragetest"
	"snowglobe.test/envtest/chain/settle"
	"snowglobe.test/envtest/fault"
)

// TestAwait waits for the watch cache and for an informer, but for neither where a rule may hold up
// their events, and for nothing that has ended.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startAwaiting(t, nil)
		assert.Equal(t, time.Second, a.write(time.Second), "an informer that sees the write after a second")
		assert.Equal(t, 3*time.Second, a.write(20*time.Second), "one that sees it late")
		a.delay = 2 * time.Second
		assert.Equal(t, a.delay, a.write(time.Second), "a watch cache that sees the write after two seconds")
		a.delay = 0
		rules, err := a.server.Faults.Add(fault.Rule{
			Action: fault.Action{Kind: fault.Hold}, Optional: true,
			Match: fault.Match{Point: "cache/pods", Server: "apiserver-0"},
		})
		require.NoError(t, err)
		assert.Zero(t, a.write(time.Second), "beside a rule about the cache")
		rules[0].Remove()
		time.AfterFunc(time.Second, a.stop)
		assert.Equal(t, time.Second, a.write(20*time.Second), "of a server that stops")
		require.True(t, a.informer.IsStopped())
		assert.Zero(t, a.write(time.Second), "without an informer that runs")
	})
}

// TestAwaitWarns reads the warning of a wait that has run out, which one that its client ends has not.
func TestAwaitWarns(t *testing.T) {
	var log bytes.Buffer
	defer klog.CaptureState().Restore()
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
	synctest.Test(t, func(t *testing.T) {
		a := startAwaiting(t, nil)
		a.patience = 2 * time.Second
		assert.Equal(t, a.patience, a.write(20*time.Second))
		assert.Empty(t, log.String())
		a.patience = time.Minute
		assert.Equal(t, 3*time.Second, a.write(20*time.Second))
		assert.Contains(t, log.String(), "waits no longer after 3s: a watch cache or an informer")
	})
}

// TestAwaitHandlers waits for a handler that takes a second for the event.
func TestAwaitHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startAwaiting(t, cache.ResourceEventHandlerFuncs{AddFunc: func(any) { time.Sleep(time.Second) }})
		assert.Equal(t, 2*time.Second, a.write(time.Second))
	})
}

// TestAwaitWatchers waits for a watcher and then for what it does, but not for long, and for nobody.
func TestAwaitWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startAwaiting(t, nil)
		a.write(0)
		resource := a.rest.Resources()[0]
		await := func() time.Duration {
			began := time.Now()
			a.server.AwaitWatchers(t.Context(), resource)
			return time.Since(began)
		}
		assert.Zero(t, await(), "nobody watches")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		watcher, err := a.stored.Watch(ctx, "/pods", storage.ListOptions{Predicate: storage.Everything, Recursive: true})
		require.NoError(t, err)
		<-watcher.ResultChan()
		assert.Equal(t, 5*time.Millisecond, await(), "a watcher that has taken all")
		a.write(0)
		time.AfterFunc(20500*time.Microsecond, func() { // it looks each millisecond
			for range watcher.ResultChan() {
			}
		})
		assert.Equal(t, 26*time.Millisecond, await(), "a watcher that takes it after a while")
		cancel()
		synctest.Wait()
	})
}

// awaiting is a store with an informer of Pods that gets its events from elsewhere.
type awaiting struct {
	*testing.T
	rest     *reststorage.Storage
	stored   storage.Interface
	client   *fake.Clientset
	informer cache.SharedIndexInformer
	stop     func() // the server and the informer
	server   *settle.Server
	delay    time.Duration // of the events of the watch cache
	patience time.Duration // of the client that writes
	awaited  time.Duration // by the newest write
	writes   int
}

// startAwaiting starts the informer, with a handler if there is one.
func startAwaiting(t *testing.T, handler cache.ResourceEventHandler) *awaiting {
	t.Helper()
	a := &awaiting{T: t, client: fake.NewClientset(), patience: time.Minute}
	store := reststoragetest.Start(t)
	a.rest = reststoragetest.New(t, store, reststorage.Config{
		InterceptCache: func(store storage.Interface, _ schema.GroupResource) (storage.Interface, func()) {
			return delayed{store, &a.delay}, func() {}
		},
		AfterWrite: func(ctx context.Context, resource *reststorage.Resource, revision uint64, _ bool) {
			began := time.Now()
			a.server.Await(ctx, resource, revision)
			a.awaited = time.Since(began)
		},
	})
	a.stored, _ = reststoragetest.Add(t, a.rest, store, pods)
	factory := informers.NewSharedInformerFactory(a.client, 0)
	a.server = &settle.Server{
		Name: "apiserver-0", Storage: a.rest, Informers: []settle.StartedInformers{settle.Started(factory)},
		Faults: fault.New(fault.Config{}),
	}
	a.server.Stopping, a.stop = context.WithCancel(t.Context())
	a.informer = factory.InformerFor(&corev1.Pod{}, podInformer)
	if handler != nil {
		_, err := a.informer.AddEventHandler(a.server.Follow(a.informer, handler))
		require.NoError(t, err)
	}
	factory.StartWithContext(a.server.Stopping)
	factory.WaitForCacheSyncWithContext(t.Context())
	time.Sleep(time.Second)
	return a
}

// podInformer has no typed informer around it, as that of factory.Core() has.
func podInformer(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
	return coreinformers.NewPodInformer(client, metav1.NamespaceAll, resync, cache.Indexers{})
}

// write creates a Pod, which the informer sees after a while, and returns how long it was awaited.
func (a *awaiting) write(sees time.Duration) time.Duration {
	a.writes++
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: strconv.Itoa(a.writes)}}
	key, err := pods.Key(pod)
	require.NoError(a, err)
	revision, err := a.rest.Revision(a.Context())
	require.NoError(a, err)
	seen := pod.DeepCopy()
	seen.ResourceVersion = strconv.FormatInt(revision+1, 10)
	time.AfterFunc(sees, func() { _ = a.client.Tracker().Add(seen) })
	ctx, cancel := context.WithTimeout(a.Context(), a.patience)
	defer cancel()
	require.NoError(a, a.stored.Create(ctx, key, pod, pod, 0))
	require.Equal(a, seen.ResourceVersion, pod.ResourceVersion)
	took := a.awaited
	time.Sleep(time.Minute)
	return took
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
