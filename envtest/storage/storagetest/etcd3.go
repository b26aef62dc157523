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

// notOnEtcd3 are the functions of upstream's contract that do not run on a plain
// etcd3 store, and why.
func notOnEtcd3() map[string]string {
	return map[string]string{
		"RunTestOptionalWatchBookmarksWithCorrectResourceVersion": "a plain store sends no bookmarks, only a watch cache does",
	}
}

// plain makes a case of a function that needs nothing but a store.
func plain(name string, set gates, run func(context.Context, *testing.T, storage.Interface)) testCase {
	return onScene(name, set, func(ctx context.Context, t *testing.T, s *scene) { run(ctx, t, s.Interface) })
}

// onScene makes a case of a function that needs more.
func onScene(name string, set gates, run func(context.Context, *testing.T, *scene)) testCase {
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
		onScene("Create", nil, func(ctx context.Context, t *testing.T, s *scene) {
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
		onScene("DeleteWithSuggestionAndMissingExpectedTransformOrDecodeError", unsafe, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, s)
		}),
		onScene("GuaranteedUpdate", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestGuaranteedUpdate(ctx, t, s, s.invariants)
		}),
		timed(plain("GuaranteedUpdateWithTTL", nil, storagetesting.RunTestGuaranteedUpdateWithTTL)),
		onScene("GuaranteedUpdateChecksStoredData", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestGuaranteedUpdateChecksStoredData(ctx, t, s)
		}),
		plain("GuaranteedUpdateWithConflict", nil, storagetesting.RunTestGuaranteedUpdateWithConflict),
		plain("GuaranteedUpdateWithSuggestionAndConflict", nil, storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
		onScene("TransformationFailure", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestTransformationFailure(ctx, t, s)
		}),
		plain("KeySchema", nil, storagetesting.RunTestKeySchema),
	}
}

func etcd3Reads() []testCase {
	list := func(stream bool) func(context.Context, *testing.T, *scene) {
		return func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestList(ctx, t, s, s.compact, false, s.lists)
			if streamed := s.streams.GetStreamReadsAndReset() > 0; streamed != stream {
				t.Errorf("lists were streamed: %t, want %t", streamed, stream)
			}
		}
	}
	stats := func(sizes bool) func(context.Context, *testing.T, *scene) {
		return func(ctx context.Context, t *testing.T, s *scene) {
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
		onScene("List/paged", with(features.EtcdRangeStream, false), list(false)),
		onScene("List/streamed", with(features.EtcdRangeStream, true), list(true)),
		onScene("ConsistentList", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestConsistentList(ctx, t, s, s.increaseRV, false, true, false)
		}),
		onScene("GetListNonRecursive", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestGetListNonRecursive(ctx, t, s.increaseRV, s)
		}),
		plain("GetListRecursivePrefix", nil, storagetesting.RunTestGetListRecursivePrefix),
		onScene("GetListWithErrorAggregation", with(features.AllowUnsafeMalformedObjectDeletion, true), func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestGetListWithErrorAggregation(ctx, t, newDeleter(s), corrupt())
		}),
		onScene("GetListWithoutErrorAggregation", with(features.AllowUnsafeMalformedObjectDeletion, false), func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, s, corrupt())
		}),
		plain("ListPaging", nil, storagetesting.RunTestListPaging),
		onScene("ListContinuation", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestListContinuation(ctx, t, s, s.calls)
		}),
		onScene("ListPaginationRareObject", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestListPaginationRareObject(ctx, t, s, s.calls)
		}),
		onScene("ListContinuationWithFilter", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestListContinuationWithFilter(ctx, t, s, s.calls)
		}),
		onScene("ListInconsistentContinuation", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestListInconsistentContinuation(ctx, t, s, s.compact)
		}),
		onScene("ListResourceVersionMatch", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestListResourceVersionMatch(ctx, t, s)
		}),
		plain("NamespaceScopedList", nil, storagetesting.RunTestNamespaceScopedList),
		onScene("CompactRevision", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestCompactRevision(ctx, t, s, s.increaseRV, s.compact)
		}),
		onScene("Stats/sizes", nil, stats(true)),
		onScene("Stats/counts", nil, stats(false)),
	}
}

func etcd3Watches() []testCase {
	cases := []testCase{
		plain("Watch", nil, storagetesting.RunTestWatch),
		plain("ClusterScopedWatch", nil, storagetesting.RunTestClusterScopedWatch),
		plain("NamespaceScopedWatch", nil, storagetesting.RunTestNamespaceScopedWatch),
		plain("DeleteTriggerWatch", nil, storagetesting.RunTestDeleteTriggerWatch),
		onScene("WatchFromZero", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestWatchFromZero(ctx, t, s, s.compact)
		}),
		plain("WatchFromNonZero", nil, storagetesting.RunTestWatchFromNonZero),
		timed(plain("DelayedWatchDelivery", nil, storagetesting.RunTestDelayedWatchDelivery)),
		onScene("WatchError", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestWatchError(ctx, t, s)
		}),
		plain("WatchContextCancel", nil, storagetesting.RunTestWatchContextCancel),
		plain("WatcherTimeout", nil, storagetesting.RunTestWatcherTimeout),
		plain("WatchDeleteEventObjectHaveLatestRV", nil, storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
		plain("WatchInitializationSignal", nil, storagetesting.RunTestWatchInitializationSignal),
		onScene("ProgressNotify", nil, func(ctx context.Context, t *testing.T, s *scene) {
			requestProgress(ctx, t, s)
			storagetesting.RunOptionalTestProgressNotify(ctx, t, s, s.increaseRV)
		}),
		onScene("WatchWithUnsafeDelete", with(features.AllowUnsafeMalformedObjectDeletion, true), func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, s, corrupt())
		}),
		onScene("WatchDispatchBookmarkEvents", nil, func(ctx context.Context, t *testing.T, s *scene) {
			requestProgress(ctx, t, s)
			storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, false)
		}),
		plain("SendInitialEventsBackwardCompatibility", nil, storagetesting.RunSendInitialEventsBackwardCompatibility),
		onScene("WatchErrorIsBlockingFurtherEvents", nil, func(ctx context.Context, t *testing.T, s *scene) {
			storagetesting.RunWatchErrorIsBlockingFurtherEvents(ctx, t, s)
		}),
	}
	for _, stream := range []bool{false, true} {
		set := with(features.EtcdRangeStream, stream)
		cases = append(cases,
			alone(plain("WatchSemantics", set, storagetesting.RunWatchSemantics)),
			alone(plain("WatchSemanticInitialEventsExtended", set, storagetesting.RunWatchSemanticInitialEventsExtended)),
			alone(plain("WatchListMatchSingle", set, storagetesting.RunWatchListMatchSingle)),
		)
	}
	return cases
}

// requestProgress asks for progress of all watches, all the time. A server would
// notify of it every ten minutes without being asked.
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
