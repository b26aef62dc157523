package reststorage_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	apistorage "k8s.io/apiserver/pkg/storage"
	kubescheme "k8s.io/client-go/kubernetes/scheme"

	"snowglobe.test/envtest/chain/reststorage"
	"snowglobe.test/envtest/chain/reststorage/reststoragetest"
	"snowglobe.test/internal/watchfilter"
)

var pods = &reststoragetest.Resource{
	GroupVersionResource: corev1.SchemeGroupVersion.WithResource("pods"), Codecs: kubescheme.Codecs,
	Object: &corev1.Pod{}, List: &corev1.PodList{},
}

// inBubble runs a test in virtual time. That the bubble ends shows that Close leaves
// no goroutine behind.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// create creates a pod and returns its key in the store and its revision.
func create(t *testing.T, to apistorage.Interface, name string) (string, int64) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	key, err := pods.Key(pod)
	require.NoError(t, err)
	created := &corev1.Pod{}
	require.NoError(t, to.Create(t.Context(), key, pod, created, 0))
	revision, err := apistorage.APIObjectVersioner{}.ObjectResourceVersion(created)
	require.NoError(t, err)
	return reststoragetest.Prefix + key, int64(revision)
}

// A key is found by the resource it belongs to, until that is destroyed, and again
// when it is made again, as that of a CRD that changes.
func TestResources(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		var ended int
		s := reststoragetest.New(t, store, reststorage.Config{
			InterceptCache: func(store apistorage.Interface, _ schema.GroupResource) (apistorage.Interface, func()) {
				return store, func() { ended++ }
			},
		})
		stored, destroy := reststoragetest.Add(t, s, store, pods)
		time.Sleep(time.Second) // the cache is ready
		key, revision := create(t, stored, "a")
		resource := s.ResourceOf(key)
		require.NotNil(t, resource)
		assert.Equal(t, []*reststorage.Resource{resource}, s.Resources())
		require.NoError(t, resource.WaitFresh(t.Context(), key, revision))

		at, objects, err := resource.Cached(t.Context(), true)
		require.NoError(t, err)
		assert.Equal(t, revision, at)
		require.Len(t, objects, 1)
		assert.Equal(t, "a", objects[0].(*corev1.Pod).Name)
		_, objects, err = resource.Cached(t.Context(), false)
		require.NoError(t, err)
		assert.Empty(t, objects)
		assert.Nil(t, s.ResourceOf(reststoragetest.Prefix+"/podsets/default/a"))

		_, destroyAgain := reststoragetest.Add(t, s, store, pods)
		destroy() // it is no longer the one
		assert.True(t, resource.Destroyed())
		require.NotNil(t, s.ResourceOf(key))
		assert.False(t, s.ResourceOf(key).Destroyed())
		assert.Equal(t, 1, ended)
		destroyAgain()
		assert.Equal(t, 2, ended)
		assert.Nil(t, s.ResourceOf(key))
		assert.Empty(t, s.Resources())
	})
}

// What is put elsewhere keeps upstream's storage, and what shall not be cached has
// no watch cache.
func TestDecorate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		s := reststoragetest.New(t, store, reststorage.Config{})
		elsewhere := pods.Options(store)
		elsewhere.StorageConfig.Transport.ServerList = []string{"http://elsewhere:2379"}
		opts, err := s.Decorate(elsewhere, &genericoptions.EtcdOptions{EnableWatchCache: true}).GetRESTOptions(pods.GroupResource(), nil)
		require.NoError(t, err)
		assert.Nil(t, opts.Decorator)

		for name, test := range map[string]struct {
			etcd   genericoptions.EtcdOptions
			cached int
		}{
			"no watch cache":     {genericoptions.EtcdOptions{}, 0},
			"size zero":          {genericoptions.EtcdOptions{EnableWatchCache: true, WatchCacheSizes: []string{"pods#0"}}, 0},
			"size of another":    {genericoptions.EtcdOptions{EnableWatchCache: true, WatchCacheSizes: []string{"nodes#0"}}, 1},
			"size without limit": {genericoptions.EtcdOptions{EnableWatchCache: true, WatchCacheSizes: []string{"pods#100"}}, 1},
		} {
			opts, err := s.Decorate(pods.Options(store), &test.etcd).GetRESTOptions(pods.GroupResource(), nil)
			require.NoError(t, err, name)
			stored, destroy, err := opts.Decorator(opts.StorageConfig, opts.ResourcePrefix, pods.Key,
				func() runtime.Object { return &corev1.Pod{} }, func() runtime.Object { return &corev1.PodList{} }, apistorage.DefaultNamespaceScopedAttr, nil, nil)
			require.NoError(t, err, name)
			t.Cleanup(destroy)
			create(t, stored, "pod-"+name)
			assert.Len(t, s.Resources(), test.cached, name)
			destroy()
		}
		_, err = s.Decorate(pods.Options(store), &genericoptions.EtcdOptions{WatchCacheSizes: []string{"pods"}}).GetRESTOptions(pods.GroupResource(), nil)
		assert.ErrorContains(t, err, "watch cache sizes")
	})
}

// TestCloseDestroysTheRest leaves to Close what nobody owns.
func TestCloseDestroysTheRest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		s := reststoragetest.New(t, store, reststorage.Config{})
		reststoragetest.Add(t, s, store, pods)
		require.Len(t, s.Resources(), 1)
		require.NoError(t, s.Close(t.Context()))
		assert.Empty(t, s.Resources())
	})
}

// heldStore is a store whose events a watch cache sees when gate is closed, not before.
type heldStore struct {
	apistorage.Interface
	gate, ended chan struct{}
}

// Watch implements storage.Interface. The first event ends the list by which the
// cache becomes ready.
func (h *heldStore) Watch(ctx context.Context, key string, opts apistorage.ListOptions) (watch.Interface, error) {
	inner, err := h.Interface.Watch(ctx, key, opts)
	if err != nil {
		return nil, err
	}
	return watchfilter.New(inner, func(event watch.Event) (watch.Event, bool) {
		if event.Type != watch.Bookmark {
			select {
			case <-h.gate:
			case <-h.ended:
			}
		}
		return event, true
	}), nil
}

// WaitFresh waits for a cache that is behind, longer than upstream's three seconds,
// and no longer than its context or the resource.
func TestWaitFresh(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		held := &heldStore{gate: make(chan struct{}), ended: make(chan struct{})}
		s := reststoragetest.New(t, store, reststorage.Config{
			InterceptCache: func(inner apistorage.Interface, resource schema.GroupResource) (apistorage.Interface, func()) {
				assert.Equal(t, pods.GroupResource(), resource)
				held.Interface = inner
				return held, func() { close(held.ended) }
			},
		})
		stored, destroy := reststoragetest.Add(t, s, store, pods)
		time.Sleep(time.Second)
		key, revision := create(t, stored, "a")
		resource := s.ResourceOf(key)

		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, enough)
		defer cancel()
		err := resource.WaitFresh(ctx, key, revision)
		require.ErrorIs(t, err, enough)
		assert.ErrorContains(t, err, "the watch cache of pods has not caught up")

		start := time.Now()
		time.AfterFunc(10*time.Second, func() { close(held.gate) })
		require.NoError(t, resource.WaitFresh(t.Context(), key, revision))
		assert.Equal(t, 10*time.Second, time.Since(start))

		gone := make(chan error)
		go func() { gone <- resource.WaitFresh(t.Context(), key, revision+1000) }()
		time.Sleep(time.Second)
		destroy()
		assert.NoError(t, <-gone)
	})
}

// RequestProgress brings a cache of what no client writes to the store's revision.
func TestRequestProgress(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		s := reststoragetest.New(t, store, reststorage.Config{})
		reststoragetest.Add(t, s, store, pods)
		time.Sleep(time.Second)
		_, err := s.Client().Put(t.Context(), "another", "key")
		require.NoError(t, err)
		revision, err := s.Revision(t.Context())
		require.NoError(t, err)
		cached := func() int64 {
			at, _, err := s.Resources()[0].Cached(t.Context(), false)
			require.NoError(t, err)
			return at
		}
		require.Less(t, cached(), revision)
		require.NoError(t, s.RequestProgress(t.Context()))
		synctest.Wait()
		assert.Equal(t, revision, cached())
	})
}

func TestCheckEventsHistoryWindows(t *testing.T) {
	for resource, want := range map[string]string{
		"pods":                "",
		"podz":                "the window of the watch cache of podz: there is no such resource",
		"widgets.example.com": "", // it may come with a CRD
	} {
		inBubble(t, func(t *testing.T) {
			store := reststoragetest.Start(t)
			s := reststoragetest.New(t, store, reststorage.Config{
				EventsHistoryWindows: map[schema.GroupResource]time.Duration{schema.ParseGroupResource(resource): time.Hour},
			})
			reststoragetest.Add(t, s, store, pods)
			err := s.CheckEventsHistoryWindows()
			if want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestHealthChecks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := reststoragetest.Start(t)
		client, err := store.Client()
		require.NoError(t, err)
		kv := &failingKV{KV: client.KV}
		client.KV = kv
		s := reststoragetest.New(t, store, reststorage.Config{Client: client, CompactionInterval: time.Minute})
		config := &genericapiserver.Config{}
		s.AddHealthChecks(config, &genericoptions.EtcdOptions{})
		checks := map[string]func() error{}
		for _, check := range append(config.HealthzChecks, config.ReadyzChecks...) {
			checks[check.Name()] = func() error { return check.Check(httptest.NewRequest("GET", "/readyz", nil)) }
		}
		require.Contains(t, checks, "etcd")
		require.Contains(t, checks, "etcd-readiness")
		for name, check := range checks {
			assert.NoError(t, check(), name)
		}
		kv.err = errors.New("no answer")
		for name, check := range checks {
			assert.ErrorContains(t, check(), "error getting data from etcd: no answer", name)
		}
	})
}

// failingKV fails reads with an error, if there is one.
type failingKV struct {
	clientv3.KV
	err error
}

// Get implements clientv3.KV.
func (f *failingKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.KV.Get(ctx, key, opts...)
}
