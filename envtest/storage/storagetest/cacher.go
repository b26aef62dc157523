package storagetest

import (
	"context"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// notOnCacher lists the functions of upstream's contract that do not apply to a watch
// cache, and why.
func notOnCacher() map[string]string {
	const noErrors = "a watch cache does not pass on errors of the store: it relists, and answers from what it has"
	return map[string]string{
		"RunTestGetListWithErrorAggregation":    noErrors,
		"RunTestGetListWithoutErrorAggregation": noErrors,
		"RunTestListInconsistentContinuation":   "a watch cache ignores the limit at resource version 0, where the function begins",
		"RunOptionalTestProgressNotify":         "a watch cache consumes the store's progress notifications and sends its own watches bookmarks",
		"RunTestTransformationFailure":          noErrors,
		"RunTestWatchError":                     noErrors,
		"RunTestWatchWithUnsafeDelete":          noErrors,
		"RunWatchErrorIsBlockingFurtherEvents":  noErrors,
	}
}

// cached makes a case from a function that needs only a store.
func cached(name string, set gates, run func(context.Context, *testing.T, storage.Interface)) testCase {
	return onCache(name, set, func(ctx context.Context, t *testing.T, c *cachedFixture) { run(ctx, t, c.Interface) })
}

// onCache makes a case from a function that needs more of the fixture.
func onCache(name string, set gates, run func(context.Context, *testing.T, *cachedFixture)) testCase {
	return onCacheWith(name, set, cacheSettings{}, run)
}

func onCacheWith(name string, set gates, want cacheSettings, run func(context.Context, *testing.T, *cachedFixture)) testCase {
	return testCase{name: name, gates: set, run: func(t *testing.T, open Opener) {
		run(context.Background(), t, setUpCached(t, open, want))
	}}
}

// noInvariants checks nothing: a watch cache passes writes through to the store.
func noInvariants(context.Context, *testing.T, string) {}

// noCalls counts nothing: a watch cache answers reads itself or passes them through.
func noCalls(*testing.T, uint64, uint64) {}

func cacherCases() []testCase {
	cases := append(cacherWrites(), cacherReads()...)
	return append(cases, cacherWatches()...)
}

func cacherWrites() []testCase {
	unsafe := with(features.AllowUnsafeMalformedObjectDeletion, true)
	return []testCase{
		onCache("Create", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestCreate(ctx, t, c, noInvariants)
		}),
		timed(cached("CreateWithTTL", nil, storagetesting.RunTestCreateWithTTL)),
		cached("CreateWithKeyExist", nil, storagetesting.RunTestCreateWithKeyExist),
		cached("UnconditionalDelete", nil, storagetesting.RunTestUnconditionalDelete),
		cached("ConditionalDelete", nil, storagetesting.RunTestConditionalDelete),
		cached("DeleteWithSuggestion", nil, storagetesting.RunTestDeleteWithSuggestion),
		cached("DeleteWithSuggestionAndConflict", nil, storagetesting.RunTestDeleteWithSuggestionAndConflict),
		cached("DeleteWithSuggestionOfDeletedObject", nil, storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
		cached("ValidateDeletionWithSuggestion", nil, storagetesting.RunTestValidateDeletionWithSuggestion),
		cached("ValidateDeletionWithOnlySuggestionValid", nil, storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
		cached("DeleteWithConflict", nil, storagetesting.RunTestDeleteWithConflict),
		cached("PreconditionalDeleteWithSuggestion", nil, storagetesting.RunTestPreconditionalDeleteWithSuggestion),
		cached("PreconditionalDeleteWithOnlySuggestionPass", nil, storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
		{name: "DeleteWithConflictAndMissingExpectedTransformOrDecodeError", gates: unsafe, run: func(t *testing.T, open Opener) {
			transformer := newFailingTransformer()
			c := setUpCached(t, open, cacheSettings{settings: settings{transformer: transformer}})
			storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(context.Background(), t, c, transformer.fail.Store)
		}},
		{name: "DeleteExpectedTransformOrDecodeError/Transform", gates: unsafe, run: func(t *testing.T, open Opener) {
			transformer := newFailingTransformer()
			c := setUpCached(t, open, cacheSettings{settings: settings{transformer: transformer}})
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(context.Background(), t, c, transformer.fail.Store)
		}},
		{name: "DeleteExpectedTransformOrDecodeError/Decode", gates: unsafe, run: func(t *testing.T, open Opener) {
			etcd3.TestOnlySetFatalOnDecodeError(t, false)
			codec := &failingCodec{Codec: codecFor(false)}
			c := setUpCached(t, open, cacheSettings{settings: settings{codec: codec}})
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(context.Background(), t, c, codec.fail.Store)
		}},
		onCache("DeleteWithSuggestionAndMissingExpectedTransformOrDecodeError", unsafe, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, c)
		}),
		onCache("GuaranteedUpdate", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestGuaranteedUpdate(ctx, t, c, noInvariants)
		}),
		timed(cached("GuaranteedUpdateWithTTL", nil, storagetesting.RunTestGuaranteedUpdateWithTTL)),
		// The function writes JSON directly to etcd.
		onCacheWith("GuaranteedUpdateChecksStoredData", nil, cacheSettings{settings: settings{codec: codecFor(false)}}, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestGuaranteedUpdateChecksStoredData(ctx, t, c)
		}),
		cached("GuaranteedUpdateWithConflict", nil, storagetesting.RunTestGuaranteedUpdateWithConflict),
		cached("GuaranteedUpdateWithSuggestionAndConflict", nil, storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
		cached("KeySchema", nil, storagetesting.RunTestKeySchema),
	}
}

func cacherReads() []testCase {
	cases := []testCase{
		urgent(cached("Get", nil, storagetesting.RunTestGet)),
		onCache("CompactRevision", with(features.ListFromCacheSnapshot, true), func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestCompactRevision(ctx, t, c, c.increaseRV, c.compact)
		}),
		cached("GetListRecursivePrefix", nil, storagetesting.RunTestGetListRecursivePrefix),
		cached("ListPaging", nil, storagetesting.RunTestListPaging),
		onCache("ListContinuation", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestListContinuation(ctx, t, c, noCalls)
		}),
		onCache("ListPaginationRareObject", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			c.catchUp(ctx, t)
			storagetesting.RunTestListPaginationRareObject(ctx, t, c, noCalls)
		}),
		onCache("ListContinuationWithFilter", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestListContinuationWithFilter(ctx, t, c, noCalls)
		}),
		onCache("ListResourceVersionMatch", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestListResourceVersionMatch(ctx, t, c)
		}),
		onCacheWith("NamespaceScopedList", nil, cacheSettings{indexed: true}, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestNamespaceScopedList(ctx, t, c)
		}),
	}
	for _, snapshots := range []bool{true, false} {
		set := with(features.ListFromCacheSnapshot, snapshots)
		cases = append(cases,
			onCache("List", set, func(ctx context.Context, t *testing.T, c *cachedFixture) {
				storagetesting.RunTestList(ctx, t, c, c.compact, true, c.lists)
			}),
			onCache("ConsistentList", set, func(ctx context.Context, t *testing.T, c *cachedFixture) {
				storagetesting.RunTestConsistentList(ctx, t, c, c.increaseRV, true, true, snapshots)
			}),
			onCache("GetListNonRecursive", set, func(ctx context.Context, t *testing.T, c *cachedFixture) {
				storagetesting.RunTestGetListNonRecursive(ctx, t, c.increaseRV, c)
			}),
		)
	}
	for _, sizes := range []bool{true, false} {
		cases = append(cases, onCache("Stats", with(features.SizeBasedListCostEstimate, sizes), func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestStats(ctx, t, c, c.codec, c.transformer, sizes)
		}))
	}
	return cases
}

func cacherWatches() []testCase {
	return []testCase{
		cached("Watch", nil, storagetesting.RunTestWatch),
		onCacheWith("ClusterScopedWatch", nil, cacheSettings{clusterScoped: true, indexed: true}, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestClusterScopedWatch(ctx, t, c)
		}),
		onCacheWith("NamespaceScopedWatch", nil, cacheSettings{indexed: true}, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestNamespaceScopedWatch(ctx, t, c)
		}),
		cached("DeleteTriggerWatch", nil, storagetesting.RunTestDeleteTriggerWatch),
		onCacheWith("WatchFromZero", nil, cacheSettings{canForget: true}, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestWatchFromZero(ctx, t, c, c.forget)
		}),
		cached("WatchFromNonZero", nil, storagetesting.RunTestWatchFromNonZero),
		timed(onCache("DelayedWatchDelivery", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			time.Sleep(dispatchBudget)
			storagetesting.RunTestDelayedWatchDelivery(ctx, t, c)
		})),
		cached("WatchContextCancel", nil, storagetesting.RunTestWatchContextCancel),
		cached("WatcherTimeout", nil, storagetesting.RunTestWatcherTimeout),
		cached("WatchDeleteEventObjectHaveLatestRV", nil, storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
		cached("WatchInitializationSignal", nil, storagetesting.RunTestWatchInitializationSignal),
		timed(onCache("WatchDispatchBookmarkEvents", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, c, true)
		})),
		timed(onCache("OptionalWatchBookmarksWithCorrectResourceVersion", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			c.catchUp(ctx, t)
			storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion(ctx, t, c)
		})),
		cached("SendInitialEventsBackwardCompatibility", nil, storagetesting.RunSendInitialEventsBackwardCompatibility),
		serial(onCache("WatchSemantics", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunWatchSemantics(ctx, t, syncedCreate{c})
		})),
		serial(onCache("WatchSemanticInitialEventsExtended", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunWatchSemanticInitialEventsExtended(ctx, t, syncedCreate{c})
		})),
		serial(onCache("WatchListMatchSingle", nil, func(ctx context.Context, t *testing.T, c *cachedFixture) {
			storagetesting.RunWatchListMatchSingle(ctx, t, syncedCreate{c})
		})),
	}
}
