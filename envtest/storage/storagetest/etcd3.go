package storagetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// notOnEtcd3 lists the functions of upstream's contract that do not apply to a plain
// etcd3 store, and why.
func notOnEtcd3() map[string]string {
	return map[string]string{
		"RunTestOptionalWatchBookmarksWithCorrectResourceVersion": "a plain store sends no bookmarks, only a watch cache does",
	}
}

// plain makes a case from a function that needs only a store.
func plain(name string, set gates, run func(context.Context, *testing.T, storage.Interface)) testCase {
	return onFixture(name, set, func(ctx context.Context, t *testing.T, s *fixture) { run(ctx, t, s.Interface) })
}

// onFixture makes a case from a function that needs more of the fixture.
func onFixture(name string, set gates, run func(context.Context, *testing.T, *fixture)) testCase {
	return testCase{name: name, gates: set, run: func(t *testing.T, open Opener) {
		run(context.Background(), t, setUp(t, open, settings{}))
	}}
}

func etcd3Cases() []testCase {
	cases := append(etcd3Writes(), etcd3Reads()...)
	return append(cases, etcd3Watches()...)
}

func etcd3Writes() []testCase {
	unsafe := with(features.AllowUnsafeMalformedObjectDeletion, true)
	return []testCase{
		onFixture("Create", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestCreate(ctx, t, s, s.invariants)
		}),
		timed(plain("CreateWithTTL", nil, storagetesting.RunTestCreateWithTTL)),
		plain("CreateWithKeyExist", nil, storagetesting.RunTestCreateWithKeyExist),
		plain("UnconditionalDelete", nil, storagetesting.RunTestUnconditionalDelete),
		plain("ConditionalDelete", nil, storagetesting.RunTestConditionalDelete),
		plain("DeleteWithSuggestion", nil, storagetesting.RunTestDeleteWithSuggestion),
		plain("DeleteWithSuggestionAndConflict", nil, storagetesting.RunTestDeleteWithSuggestionAndConflict),
		plain("DeleteWithSuggestionOfDeletedObject", nil, storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
		plain("ValidateDeletionWithSuggestion", nil, storagetesting.RunTestValidateDeletionWithSuggestion),
		plain("ValidateDeletionWithOnlySuggestionValid", nil, storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
		plain("DeleteWithConflict", nil, storagetesting.RunTestDeleteWithConflict),
		plain("PreconditionalDeleteWithSuggestion", nil, storagetesting.RunTestPreconditionalDeleteWithSuggestion),
		plain("PreconditionalDeleteWithOnlySuggestionPass", nil, storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
		{name: "DeleteWithConflictAndMissingExpectedTransformOrDecodeError", gates: unsafe, run: func(t *testing.T, open Opener) {
			codec := &failingCodec{Codec: codecFor(false)}
			s := setUp(t, open, settings{codec: codec})
			storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(context.Background(), t, s, codec.fail.Store)
		}},
		{name: "DeleteExpectedTransformOrDecodeError/Transform", gates: unsafe, run: func(t *testing.T, open Opener) {
			transformer := newFailingTransformer()
			s := setUp(t, open, settings{transformer: transformer})
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(context.Background(), t, s, transformer.fail.Store)
		}},
		{name: "DeleteExpectedTransformOrDecodeError/Decode", gates: unsafe, run: func(t *testing.T, open Opener) {
			codec := &failingCodec{Codec: codecFor(false)}
			s := setUp(t, open, settings{codec: codec})
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(context.Background(), t, s, codec.fail.Store)
		}},
		onFixture("DeleteWithSuggestionAndMissingExpectedTransformOrDecodeError", unsafe, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, s)
		}),
		onFixture("GuaranteedUpdate", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestGuaranteedUpdate(ctx, t, s, s.invariants)
		}),
		timed(plain("GuaranteedUpdateWithTTL", nil, storagetesting.RunTestGuaranteedUpdateWithTTL)),
		onFixture("GuaranteedUpdateChecksStoredData", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestGuaranteedUpdateChecksStoredData(ctx, t, s)
		}),
		plain("GuaranteedUpdateWithConflict", nil, storagetesting.RunTestGuaranteedUpdateWithConflict),
		plain("GuaranteedUpdateWithSuggestionAndConflict", nil, storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
		onFixture("TransformationFailure", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestTransformationFailure(ctx, t, s)
		}),
		plain("KeySchema", nil, storagetesting.RunTestKeySchema),
	}
}

func etcd3Reads() []testCase {
	list := func(stream bool) func(context.Context, *testing.T, *fixture) {
		return func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestList(ctx, t, s, s.compact, false, s.lists)
			if streamed := s.streams.GetStreamReadsAndReset() > 0; streamed != stream {
				t.Errorf("lists were streamed: %t, want %t", streamed, stream)
			}
		}
	}
	stats := func(sizes bool) func(context.Context, *testing.T, *fixture) {
		return func(ctx context.Context, t *testing.T, s *fixture) {
			if sizes {
				if err := s.EnableResourceSizeEstimation(s.keys); err != nil {
					t.Fatal(err)
				}
			}
			storagetesting.RunTestStats(ctx, t, s, s.codec, s.transformer, sizes)
		}
	}
	return []testCase{
		urgent(plain("Get", nil, storagetesting.RunTestGet)),
		onFixture("List/paged", with(features.EtcdRangeStream, false), list(false)),
		onFixture("List/streamed", with(features.EtcdRangeStream, true), list(true)),
		onFixture("ConsistentList", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestConsistentList(ctx, t, s, s.increaseRV, false, true, false)
		}),
		onFixture("GetListNonRecursive", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestGetListNonRecursive(ctx, t, s.increaseRV, s)
		}),
		plain("GetListRecursivePrefix", nil, storagetesting.RunTestGetListRecursivePrefix),
		onFixture("GetListWithErrorAggregation", with(features.AllowUnsafeMalformedObjectDeletion, true), func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestGetListWithErrorAggregation(ctx, t, newDeleter(s), corrupt())
		}),
		onFixture("GetListWithoutErrorAggregation", with(features.AllowUnsafeMalformedObjectDeletion, false), func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, s, corrupt())
		}),
		plain("ListPaging", nil, storagetesting.RunTestListPaging),
		onFixture("ListContinuation", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestListContinuation(ctx, t, s, s.calls)
		}),
		onFixture("ListPaginationRareObject", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestListPaginationRareObject(ctx, t, s, s.calls)
		}),
		onFixture("ListContinuationWithFilter", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestListContinuationWithFilter(ctx, t, s, s.calls)
		}),
		onFixture("ListInconsistentContinuation", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestListInconsistentContinuation(ctx, t, s, s.compact)
		}),
		onFixture("ListResourceVersionMatch", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestListResourceVersionMatch(ctx, t, s)
		}),
		plain("NamespaceScopedList", nil, storagetesting.RunTestNamespaceScopedList),
		onFixture("CompactRevision", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestCompactRevision(ctx, t, s, s.increaseRV, s.compact)
		}),
		onFixture("Stats/sizes", nil, stats(true)),
		onFixture("Stats/counts", nil, stats(false)),
	}
}

func etcd3Watches() []testCase {
	cases := []testCase{
		plain("Watch", nil, storagetesting.RunTestWatch),
		plain("ClusterScopedWatch", nil, storagetesting.RunTestClusterScopedWatch),
		plain("NamespaceScopedWatch", nil, storagetesting.RunTestNamespaceScopedWatch),
		plain("DeleteTriggerWatch", nil, storagetesting.RunTestDeleteTriggerWatch),
		onFixture("WatchFromZero", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestWatchFromZero(ctx, t, s, s.compact)
		}),
		plain("WatchFromNonZero", nil, storagetesting.RunTestWatchFromNonZero),
		timed(plain("DelayedWatchDelivery", nil, storagetesting.RunTestDelayedWatchDelivery)),
		onFixture("WatchError", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestWatchError(ctx, t, s)
		}),
		plain("WatchContextCancel", nil, storagetesting.RunTestWatchContextCancel),
		plain("WatcherTimeout", nil, storagetesting.RunTestWatcherTimeout),
		plain("WatchDeleteEventObjectHaveLatestRV", nil, storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
		plain("WatchInitializationSignal", nil, storagetesting.RunTestWatchInitializationSignal),
		onFixture("ProgressNotify", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			requestProgress(ctx, t, s)
			storagetesting.RunOptionalTestProgressNotify(ctx, t, s, s.increaseRV)
		}),
		onFixture("WatchWithUnsafeDelete", with(features.AllowUnsafeMalformedObjectDeletion, true), func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, s, corrupt())
		}),
		onFixture("WatchDispatchBookmarkEvents", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			requestProgress(ctx, t, s)
			storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, false)
		}),
		plain("SendInitialEventsBackwardCompatibility", nil, storagetesting.RunSendInitialEventsBackwardCompatibility),
		onFixture("WatchErrorIsBlockingFurtherEvents", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunWatchErrorIsBlockingFurtherEvents(ctx, t, s)
		}),
	}
	for _, stream := range []bool{false, true} {
		set := with(features.EtcdRangeStream, stream)
		cases = append(cases,
			serial(plain("WatchSemantics", set, storagetesting.RunWatchSemantics)),
			serial(plain("WatchSemanticInitialEventsExtended", set, storagetesting.RunWatchSemanticInitialEventsExtended)),
			serial(plain("WatchListMatchSingle", set, storagetesting.RunWatchListMatchSingle)),
		)
	}
	return cases
}

// requestProgress keeps requesting progress notifications for all watches. Unasked, a
// server sends them every ten minutes.
func requestProgress(ctx context.Context, t *testing.T, store storage.Interface) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := store.RequestWatchProgress(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("request progress: %v", err)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		asking.Wait()
	})
}
