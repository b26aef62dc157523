package contract

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// onStore is the layer of a plain etcd3 store.
func onStore(t *testing.T, open opener, want settings) subject { return setUp(t, open, want) }

func etcd3Cases() []testCase {
	unsafe := with(features.AllowUnsafeMalformedObjectDeletion, true)
	cases := append(sharedCases(onStore), etcd3Lists()...)
	cases = append(cases, etcd3Watches()...)
	return append(cases, []testCase{
		{name: "DeleteWithConflictAndMissingExpectedTransformOrDecodeError", gates: unsafe, run: func(t *testing.T, open opener) {
			codec := &failingCodec{Codec: codecFor(false)}
			s := setUp(t, open, settings{codec: codec})
			storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(context.Background(), t, s, codec.fail.Store)
		}},
		{name: "DeleteExpectedTransformOrDecodeError/Decode", gates: unsafe, run: func(t *testing.T, open opener) {
			codec := &failingCodec{Codec: codecFor(false)}
			s := setUp(t, open, settings{codec: codec})
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(context.Background(), t, s, codec.fail.Store)
		}},
		newCase(onStore, "TransformationFailure", nil, storagetesting.RunTestTransformationFailure),
	}...)
}

func etcd3Lists() []testCase {
	list := func(stream bool) func(context.Context, *testing.T, *fixture) {
		return func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestList(ctx, t, s, s.compact, false, s.lists)
			assert.Equal(t, stream, s.streams.GetStreamReadsAndReset() > 0, "lists were streamed")
		}
	}
	stats := func(sizes bool) func(context.Context, *testing.T, *fixture) {
		return func(ctx context.Context, t *testing.T, s *fixture) {
			if sizes {
				must(t, s.EnableResourceSizeEstimation(s.keys))
			}
			storagetesting.RunTestStats(ctx, t, s, s.codec, s.transformer, sizes)
		}
	}
	return []testCase{
		newCase(onStore, "List/paged", with(features.EtcdRangeStream, false), list(false)),
		newCase(onStore, "List/streamed", with(features.EtcdRangeStream, true), list(true)),
		newCase(onStore, "ConsistentList", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestConsistentList(ctx, t, s, s.increaseRV, false, true, false)
		}),
		newCase(onStore, "GetListNonRecursive", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestGetListNonRecursive(ctx, t, s.increaseRV, s)
		}),
		newCase(onStore, "GetListWithErrorAggregation", with(features.AllowUnsafeMalformedObjectDeletion, true), func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestGetListWithErrorAggregation(ctx, t, newDeleter(s), corrupt())
		}),
		newCase(onStore, "GetListWithoutErrorAggregation", with(features.AllowUnsafeMalformedObjectDeletion, false), func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, s, corrupt())
		}),
		newCase(onStore, "ListPaginationRareObject", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestListPaginationRareObject(ctx, t, s, s.calls)
		}),
		newCase(onStore, "ListInconsistentContinuation", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestListInconsistentContinuation(ctx, t, s, s.compact)
		}),
		newCase(onStore, "NamespaceScopedList", nil, storagetesting.RunTestNamespaceScopedList),
		newCase(onStore, "CompactRevision", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestCompactRevision(ctx, t, s, s.increaseRV, s.compact)
		}),
		newCase(onStore, "Stats/sizes", nil, stats(true)),
		newCase(onStore, "Stats/counts", nil, stats(false)),
	}
}

func etcd3Watches() []testCase {
	cases := []testCase{
		newCase(onStore, "ClusterScopedWatch", nil, storagetesting.RunTestClusterScopedWatch),
		newCase(onStore, "NamespaceScopedWatch", nil, storagetesting.RunTestNamespaceScopedWatch),
		newCase(onStore, "WatchFromZero", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestWatchFromZero(ctx, t, s, s.compact)
		}),
		newCase(onStore, "DelayedWatchDelivery", nil, storagetesting.RunTestDelayedWatchDelivery).as(timed),
		newCase(onStore, "WatchError", nil, storagetesting.RunTestWatchError),
		newCase(onStore, "ProgressNotify", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			requestProgress(ctx, t, s)
			storagetesting.RunOptionalTestProgressNotify(ctx, t, s, s.increaseRV)
		}),
		newCase(onStore, "WatchWithUnsafeDelete", with(features.AllowUnsafeMalformedObjectDeletion, true), func(ctx context.Context, t *testing.T, s *fixture) {
			storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, s, corrupt())
		}),
		newCase(onStore, "WatchDispatchBookmarkEvents", nil, func(ctx context.Context, t *testing.T, s *fixture) {
			requestProgress(ctx, t, s)
			storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, s, false)
		}),
		newCase(onStore, "WatchErrorIsBlockingFurtherEvents", nil, storagetesting.RunWatchErrorIsBlockingFurtherEvents),
	}
	for _, stream := range []bool{false, true} {
		set := with(features.EtcdRangeStream, stream)
		cases = append(cases,
			newCase(onStore, "WatchSemantics", set, storagetesting.RunWatchSemantics).as(serial),
			newCase(onStore, "WatchSemanticInitialEventsExtended", set, storagetesting.RunWatchSemanticInitialEventsExtended).as(serial),
			newCase(onStore, "WatchListMatchSingle", set, storagetesting.RunWatchListMatchSingle).as(serial),
		)
	}
	return cases
}

// requestProgress keeps asking for progress, which unasked comes every ten minutes.
func requestProgress(ctx context.Context, t *testing.T, store storage.Interface) {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				err := store.RequestWatchProgress(ctx)
				assert.True(t, err == nil || ctx.Err() != nil, "request progress: %v", err)
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
