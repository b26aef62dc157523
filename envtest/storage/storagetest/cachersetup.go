package storagetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
)

// cacheHistory is more events than an idle watch cache of upstream's remembers.
const cacheHistory = 128

// dispatchBudget is in how long upstream's watch cache saves up the most it has, a
// tenth of a second, to wait for slow watchers; a new cache waits for none. A
// watcher is slow that is not run while its two buffers of ten events fill.
const dispatchBudget = 2 * time.Second

// cachedScene is a scene behind a watch cache.
type cachedScene struct {
	storage.Interface // the watch cache, and the store behind it
	*scene
	clock *nudgedClock
}

// cacheSettings are what cases want different.
type cacheSettings struct {
	settings
	clusterScoped bool
	indexed       bool // by node and by namespace
	forgetful     bool // so that forget works
}

func setUpCached(t *testing.T, open Opener, want cacheSettings) *cachedScene {
	t.Helper()
	if want.codec == nil {
		want.codec = codecFor(true)
	}
	want.pathPrefix = "/registry"
	c := &cachedScene{scene: setUp(t, open, want.settings), clock: &nudgedClock{}}
	// One list error, so that the relist is a part of the contract; lists are not
	// asked for when the cache fills itself by a watch.
	flaky := &storagetesting.StorageInjectingListErrors{Interface: c.scene.Interface, Errors: 1}
	if clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient) {
		flaky.Errors = 0
	}
	cfg := cacher.Config{
		Storage: flaky, Versioner: storage.APIObjectVersioner{}, GroupResource: pods,
		EventsHistoryWindow: cacher.DefaultEventFreshDuration, ResourcePrefix: resourcePrefix, KeyFunc: namespacedKey,
		GetAttrsFunc: attributes, NewFunc: newPod, NewListFunc: newPodList, Indexers: &cache.Indexers{}, Codec: c.codec, Clock: c.clock,
	}
	if want.clusterScoped {
		cfg.KeyFunc = clusterKey
	}
	if want.indexed {
		cfg.IndexerFuncs = storage.IndexerFuncs{"spec.nodeName": nodeName}
		cfg.Indexers = &cache.Indexers{"f:spec.nodeName": byNode, "f:metadata.namespace": byNamespace}
	}
	if want.forgetful {
		cfg.Storage = unstamped{flaky}
	}
	watchCache, err := cacher.NewCacherFromConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	delegator := cacher.NewCacheDelegator(watchCache, flaky)
	t.Cleanup(func() {
		delegator.Stop()
		watchCache.Stop()
	})
	await(context.Background(), t, "the injected list error", func() bool {
		consumed, err := flaky.ErrorsConsumed()
		return consumed || err != nil
	})
	if err := watchCache.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	c.Interface = delegator
	return c
}

func namespacedKey(obj runtime.Object) (string, error) {
	return storage.NamespaceKeyFunc(resourcePrefix, obj)
}

func clusterKey(obj runtime.Object) (string, error) {
	return storage.NoNamespaceKeyFunc(resourcePrefix, obj)
}

func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	pod, ok := obj.(*example.Pod)
	if !ok {
		return nil, nil, fmt.Errorf("a %T is no pod", obj)
	}
	return pod.Labels, fields.Set{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "spec.nodeName": pod.Spec.NodeName,
		"spec.restartPolicy": string(pod.Spec.RestartPolicy), "status.phase": string(pod.Status.Phase),
	}, nil
}

func nodeName(obj runtime.Object) string { return obj.(*example.Pod).Spec.NodeName }

func byNode(obj any) ([]string, error) { return []string{obj.(*example.Pod).Spec.NodeName}, nil }

func byNamespace(obj any) ([]string, error) { return []string{obj.(*example.Pod).Namespace}, nil }

// compact compacts the store and has the cache drop its snapshots.
func (c *cachedScene) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	c.scene.compact(ctx, t, resourceVersion)
	if !utilfeature.DefaultFeatureGate.Enabled(features.ListFromCacheSnapshot) {
		return // there are none
	}
	rev := revision(t, resourceVersion)
	c.clock.nudge()
	await(ctx, t, "the watch cache to know of the compaction", func() bool { return c.CompactRevision() == rev })
}

// unstamped is a store whose events don't say when they came, so that the clock
// of the cache decides.
type unstamped struct{ storage.Interface }

// Watch implements storage.Interface.
func (u unstamped) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	opts.RecordTimestamps = false
	return u.Interface.Watch(ctx, key, opts)
}

// forget compacts the store and has the cache forget its history, as it does
// when events grow old and others come.
func (c *cachedScene) forget(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	c.seen(ctx, t, resourceVersion)
	c.clock.leap(2 * cacher.DefaultEventFreshDuration)
	other := &example.Pod{}
	for i := range cacheHistory {
		pod := &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("other-%d", i), Namespace: "others"}}
		if err := c.Create(ctx, resourcePrefix+"others/"+pod.Name, pod, other, 0); err != nil {
			t.Fatal(err)
		}
	}
	c.seen(ctx, t, other.ResourceVersion)
	c.compact(ctx, t, resourceVersion)
}

// seen waits until the cache has seen a resource version.
func (c *cachedScene) seen(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	opts := storage.ListOptions{ResourceVersion: resourceVersion, Predicate: storage.Everything, Recursive: true}
	if err := c.GetList(ctx, resourcePrefix, opts, &example.PodList{}); err != nil {
		t.Fatalf("wait until the watch cache has seen %s: %v", resourceVersion, err)
	}
}

// catchUp has the case end only when the cache has seen all its writes. Upstream
// can't stop a watch cache that is a hundred events behind: what hands them on
// has ended then, and what waits for it is waited for.
func (c *cachedScene) catchUp(ctx context.Context, t *testing.T) {
	t.Cleanup(func() {
		rev, err := c.GetCurrentResourceVersion(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		c.seen(ctx, t, fmt.Sprint(rev))
	})
}

// settled is a watch cache whose Create waits until the cache has the object.
type settled struct{ *cachedScene }

// Create implements storage.Interface.
func (s settled) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := s.Interface.Create(ctx, key, obj, out, ttl); err != nil {
		return err
	}
	version, err := storage.APIObjectVersioner{}.ObjectResourceVersion(out)
	if err != nil {
		return err
	}
	// A cached read at a version waits until the cache has come so far.
	cached := newPod()
	if err := s.Get(ctx, key, storage.GetOptions{ResourceVersion: fmt.Sprint(version)}, cached); err != nil {
		return err
	}
	if !apiequality.Semantic.DeepEqual(cached, out) {
		return errors.New("the cached object is not what was created")
	}
	return nil
}
