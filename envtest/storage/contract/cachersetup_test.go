package contract

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

// cacheHistory is more events than an idle upstream watch cache keeps.
const cacheHistory = 128

// dispatchBudget is how long upstream's watch cache takes to fill its time budget for
// slow watchers, a tenth of a second; a new cache has none. A watcher is slow if it
// is not scheduled while its two buffers of ten events fill.
const dispatchBudget = 2 * time.Second

// cachedFixture is a fixture behind a watch cache.
type cachedFixture struct {
	storage.Interface // the watch cache in front of the store
	*fixture
	clock *compactorClock
}

// cacheSettings are what a case may set; zero values mean the defaults.
type cacheSettings struct {
	settings
	clusterScoped bool
	indexed       bool // by node and by namespace
	canForget     bool // required by forget
	// above is what is between the cache and its store; nil for nothing.
	above func(storage.Interface) storage.Interface
}

func setUpCached(t *testing.T, open opener, want cacheSettings) *cachedFixture {
	t.Helper()
	if want.codec == nil {
		want.codec = codecFor(true)
	}
	want.pathPrefix = "/registry"
	c := &cachedFixture{fixture: setUp(t, open, want.settings), clock: &compactorClock{}}
	// One list error makes the relist part of the contract. A cache that fills itself
	// by a watch does not list.
	flaky := &storagetesting.StorageInjectingListErrors{Interface: c.fixture.Interface, Errors: 1}
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
	if want.canForget {
		cfg.Storage = withoutTimestamps{flaky}
	}
	if want.above != nil {
		cfg.Storage = want.above(cfg.Storage)
	}
	source := &ending{Interface: cfg.Storage}
	cfg.Storage = source
	watchCache, err := cacher.NewCacherFromConfig(cfg)
	must(t, err)
	delegator := cacher.NewCacheDelegator(watchCache, flaky)
	t.Cleanup(func() {
		delegator.Stop()
		source.end()
		watchCache.Stop()
	})
	await(context.Background(), t, "the injected list error", func() bool {
		consumed, err := flaky.ErrorsConsumed()
		return consumed || err != nil
	})
	must(t, watchCache.Wait(context.Background()))
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
		return nil, nil, fmt.Errorf("a %T is not a pod", obj)
	}
	return pod.Labels, fields.Set{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "spec.nodeName": pod.Spec.NodeName,
		"spec.restartPolicy": string(pod.Spec.RestartPolicy), "status.phase": string(pod.Status.Phase),
	}, nil
}

func nodeName(obj runtime.Object) string { return obj.(*example.Pod).Spec.NodeName }

func byNode(obj any) ([]string, error) { return []string{obj.(*example.Pod).Spec.NodeName}, nil }

func byNamespace(obj any) ([]string, error) { return []string{obj.(*example.Pod).Namespace}, nil }

// compact compacts the store and makes the cache drop its snapshots.
func (c *cachedFixture) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	c.fixture.compact(ctx, t, resourceVersion)
	if !utilfeature.DefaultFeatureGate.Enabled(features.ListFromCacheSnapshot) {
		return // the cache has none
	}
	rev := revision(t, resourceVersion)
	c.clock.fireCompactor()
	await(ctx, t, "the watch cache to notice the compaction", func() bool { return c.CompactRevision() == rev })
}

// invariants checks nothing: a watch cache passes writes through to the store.
func (c *cachedFixture) invariants(context.Context, *testing.T, string) {}

// calls counts nothing: a watch cache answers reads itself or passes them through.
func (c *cachedFixture) calls(*testing.T, uint64, uint64) {}

// withoutTimestamps drops the events' timestamps, so that the cache's clock decides.
type withoutTimestamps struct{ storage.Interface }

// Watch implements storage.Interface.
func (u withoutTimestamps) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	opts.RecordTimestamps = false
	return u.Interface.Watch(ctx, key, opts)
}

// forget compacts the store and makes the cache forget its history, as it does when
// events are old and newer ones arrive.
func (c *cachedFixture) forget(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	c.seen(ctx, t, resourceVersion)
	c.clock.advance(2 * cacher.DefaultEventFreshDuration)
	other := &example.Pod{}
	for i := range cacheHistory {
		pod := &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("other-%d", i), Namespace: "others"}}
		must(t, c.Create(ctx, resourcePrefix+"others/"+pod.Name, pod, other, 0))
	}
	c.seen(ctx, t, other.ResourceVersion)
	c.compact(ctx, t, resourceVersion)
}

// seen waits until the cache has seen a resource version.
func (c *cachedFixture) seen(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	opts := storage.ListOptions{ResourceVersion: resourceVersion, Predicate: storage.Everything, Recursive: true}
	require.NoError(t, c.GetList(ctx, resourcePrefix, opts, &example.PodList{}), "wait until the watch cache has seen %s", resourceVersion)
}

// catchUp makes the case end only when the cache has seen all its writes. Upstream
// can't stop a watch cache that is a hundred events behind: the goroutine that
// dispatches events has ended by then, and Stop waits for one that waits for it.
func (c *cachedFixture) catchUp(ctx context.Context, t *testing.T) {
	t.Cleanup(func() {
		rev, err := c.GetCurrentResourceVersion(ctx)
		must(t, err)
		c.seen(ctx, t, fmt.Sprint(rev))
	})
}

// syncedCreate is a watch cache whose Create waits until the cache has the object.
type syncedCreate struct{ *cachedFixture }

// Create implements storage.Interface.
func (s syncedCreate) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := s.Interface.Create(ctx, key, obj, out, ttl); err != nil {
		return err
	}
	version, err := storage.APIObjectVersioner{}.ObjectResourceVersion(out)
	if err != nil {
		return err
	}
	// A cached read at a version waits until the cache has that version.
	cached := newPod()
	if err := s.Get(ctx, key, storage.GetOptions{ResourceVersion: fmt.Sprint(version)}, cached); err != nil {
		return err
	}
	if !apiequality.Semantic.DeepEqual(cached, out) {
		return errors.New("the cached object differs from what was created")
	}
	return nil
}
