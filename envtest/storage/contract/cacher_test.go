package contract

import (
	"context"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// onCache is the layer of a watch cache.
func onCache(t *testing.T, open opener, want settings) subject {
	return setUpCached(t, open, cacheSettings{settings: want})
}

// onSyncedCache is the layer of a watch cache that has what its Create has created.
func onSyncedCache(t *testing.T, open opener, want settings) subject {
	return syncedCreate{setUpCached(t, open, cacheSettings{settings: want})}
}

// onCacheOf is onCache with other settings.
func onCacheOf(want cacheSettings) layer {
	return func(t *testing.T, open opener, _ settings) subject { return setUpCached(t, open, want) }
}

func cacherCases() []testCase {
	unsafe := with(features.AllowUnsafeMalformedObjectDeletion, true)
	cases := append(sharedCases(onCache), cacherLists()...)
	cases = append(cases, cacherWatches()...)
	return append(cases, []testCase{
		{name: "DeleteWithConflictAndMissingExpectedTransformOrDecodeError", gates: unsafe, run: func(t *testing.T, open opener) {
			transformer := newFailingTransformer()
			c := onCache(t, open, settings{transformer: transformer})
			storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(context.Background(), t, c, transformer.fail.Store)
		}},
		{name: "DeleteExpectedTransformOrDecodeError/Decode", gates: unsafe, run: func(t *testing.T, open opener) {
			etcd3.TestOnlySetFatalOnDecodeError(t, false)
			codec := &failingCodec{Codec: codecFor(false)}
			c := onCache(t, open, settings{codec: codec})
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(context.Background(), t, c, codec.fail.Store)
		}},
	}...)
}

func cacherLists() []testCase {
	cases := []testCase{
		newCase(onCache, "CompactRevision", with(features.ListFromCacheSnapshot, true), func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestCompactRevision(ctx, t, c, c.increaseRV, c.compact)
		}),
		newCase(onCache, "ListPaginationRareObject", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			c.catchUp(ctx, t)
			storagetesting.RunTestListPaginationRareObject(ctx, t, c, c.calls)
		}),
		newCase(onCacheOf(cacheSettings{indexed: true}), "NamespaceScopedList", nil, storagetesting.RunTestNamespaceScopedList),
	}
	for _, snapshots := range []bool{true, false} {
		set := with(features.ListFromCacheSnapshot, snapshots)
		cases = append(cases,
			newCase(onCache, "List", set, func(ctx context.Context, t *testing.T, c *cachedFixture) {
				storagetesting.RunTestList(ctx, t, c, c.compact, true, c.lists)
			}),
			consistentList("ConsistentList", snapshots, func(*stuttering, context.Context, *testing.T) {}),
			newCase(onCache, "GetListNonRecursive", set, func(ctx context.Context, t *testing.T, c *cachedFixture) {
				storagetesting.RunTestGetListNonRecursive(ctx, t, c.increaseRV, c)
			}),
		)
	}
	for _, sizes := range []bool{true, false} {
		cases = append(cases, newCase(onCache, "Stats", with(features.SizeBasedListCostEstimate, sizes), func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestStats(ctx, t, c, c.codec, c.transformer, sizes)
		}))
	}
	return cases
}

// consistentList runs upstream's ConsistentList on a punctual store. After each write it calls a
// function with what is below that.
func consistentList(name string, snapshots bool, written func(*stuttering, context.Context, *testing.T)) testCase {
	return testCase{name: name, gates: with(features.ListFromCacheSnapshot, snapshots), run: func(t *testing.T, open opener) {
		store, below := &punctual{}, &stuttering{}
		c := setUpCached(t, open, cacheSettings{above: func(inner storage.Interface) storage.Interface {
			below.Interface, store.Interface = inner, below
			return store
		}})
		f := punctualFixture{c, store, func(ctx context.Context, t *testing.T) { written(below, ctx, t) }}
		storagetesting.RunTestConsistentList(context.Background(), t, f, f.increaseRV, true, true, snapshots)
	}}
}

func cacherWatches() []testCase {
	return []testCase{
		newCase(onCacheOf(cacheSettings{clusterScoped: true, indexed: true}), "ClusterScopedWatch", nil, storagetesting.RunTestClusterScopedWatch),
		newCase(onCacheOf(cacheSettings{indexed: true}), "NamespaceScopedWatch", nil, storagetesting.RunTestNamespaceScopedWatch),
		newCase(onCacheOf(cacheSettings{canForget: true}), "WatchFromZero", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestWatchFromZero(ctx, t, c, c.forget)
		}),
		newCase(onCache, "DelayedWatchDelivery", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			time.Sleep(dispatchBudget)
			storagetesting.RunTestDelayedWatchDelivery(ctx, t, c)
		}).as(timed),
		newCase(onCache, "WatchDispatchBookmarkEvents", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, c, true)
		}).as(timed),
		newCase(onCache, "OptionalWatchBookmarksWithCorrectResourceVersion", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			c.catchUp(ctx, t)
			storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion(ctx, t, c)
		}).as(timed),
		newCase(onSyncedCache, "WatchSemantics", nil, storagetesting.RunWatchSemantics).as(serial),
		newCase(onSyncedCache, "WatchSemanticInitialEventsExtended", nil, storagetesting.RunWatchSemanticInitialEventsExtended).as(serial),
		newCase(onSyncedCache, "WatchListMatchSingle", nil, storagetesting.RunWatchListMatchSingle).as(serial),
	}
}
