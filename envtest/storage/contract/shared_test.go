package contract

import (
	"context"
	"testing"

	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// subject is what a case runs on: a *fixture or a *cachedFixture.
type subject interface {
	storagetesting.InterfaceWithPrefixTransformer
	increaseRV(ctx context.Context, t *testing.T) int64
	compact(ctx context.Context, t *testing.T, resourceVersion string)
	invariants(ctx context.Context, t *testing.T, key string)
	calls(t *testing.T, pageSize, objects uint64)
}

// layer sets up a subject for one case.
type layer func(t *testing.T, open opener, want settings) subject

// newCase makes a case of an upstream function; S is what it needs of the subject.
func newCase[S storage.Interface](on layer, name string, set gates, run func(context.Context, *testing.T, S)) testCase {
	return testCase{name: name, gates: set, run: func(t *testing.T, open opener) {
		run(context.Background(), t, on(t, open, settings{}).(S))
	}}
}

// sharedCases are those that are the same on each layer.
func sharedCases(on layer) []testCase {
	unsafe := with(features.AllowUnsafeMalformedObjectDeletion, true)
	return []testCase{
		newCase(on, "Create", nil, func(ctx context.Context, t *testing.T, s subject) {
			storagetesting.RunTestCreate(ctx, t, s, s.invariants)
		}),
		newCase(on, "CreateWithTTL", nil, storagetesting.RunTestCreateWithTTL).as(timed),
		newCase(on, "CreateWithKeyExist", nil, storagetesting.RunTestCreateWithKeyExist),
		newCase(on, "UnconditionalDelete", nil, storagetesting.RunTestUnconditionalDelete),
		newCase(on, "ConditionalDelete", nil, storagetesting.RunTestConditionalDelete),
		newCase(on, "DeleteWithSuggestion", nil, storagetesting.RunTestDeleteWithSuggestion),
		newCase(on, "DeleteWithSuggestionAndConflict", nil, storagetesting.RunTestDeleteWithSuggestionAndConflict),
		newCase(on, "DeleteWithSuggestionOfDeletedObject", nil, storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
		newCase(on, "ValidateDeletionWithSuggestion", nil, storagetesting.RunTestValidateDeletionWithSuggestion),
		newCase(on, "ValidateDeletionWithOnlySuggestionValid", nil, storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
		newCase(on, "DeleteWithConflict", nil, storagetesting.RunTestDeleteWithConflict),
		newCase(on, "PreconditionalDeleteWithSuggestion", nil, storagetesting.RunTestPreconditionalDeleteWithSuggestion),
		newCase(on, "PreconditionalDeleteWithOnlySuggestionPass", nil, storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
		{name: "DeleteExpectedTransformOrDecodeError/Transform", gates: unsafe, run: func(t *testing.T, open opener) {
			transformer := newFailingTransformer()
			s := on(t, open, settings{transformer: transformer})
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(context.Background(), t, s, transformer.fail.Store)
		}},
		newCase(on, "DeleteWithSuggestionAndMissingExpectedTransformOrDecodeError", unsafe, func(ctx context.Context, t *testing.T, s subject) {
			storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, s)
		}),
		newCase(on, "GuaranteedUpdate", nil, func(ctx context.Context, t *testing.T, s subject) {
			storagetesting.RunTestGuaranteedUpdate(ctx, t, s, s.invariants)
		}),
		newCase(on, "GuaranteedUpdateWithTTL", nil, storagetesting.RunTestGuaranteedUpdateWithTTL).as(timed),
		{name: "GuaranteedUpdateChecksStoredData", run: func(t *testing.T, open opener) {
			s := on(t, open, settings{codec: codecFor(false)}) // the function writes JSON directly to etcd
			storagetesting.RunTestGuaranteedUpdateChecksStoredData(context.Background(), t, s)
		}},
		newCase(on, "GuaranteedUpdateWithConflict", nil, storagetesting.RunTestGuaranteedUpdateWithConflict),
		newCase(on, "GuaranteedUpdateWithSuggestionAndConflict", nil, storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
		newCase(on, "KeySchema", nil, storagetesting.RunTestKeySchema),

		newCase(on, "Get", nil, storagetesting.RunTestGet).as(urgent),
		newCase(on, "GetListRecursivePrefix", nil, storagetesting.RunTestGetListRecursivePrefix),
		newCase(on, "ListPaging", nil, storagetesting.RunTestListPaging),
		newCase(on, "ListContinuation", nil, func(ctx context.Context, t *testing.T, s subject) {
			storagetesting.RunTestListContinuation(ctx, t, s, s.calls)
		}),
		newCase(on, "ListContinuationWithFilter", nil, func(ctx context.Context, t *testing.T, s subject) {
			storagetesting.RunTestListContinuationWithFilter(ctx, t, s, s.calls)
		}),
		newCase(on, "ListResourceVersionMatch", nil, storagetesting.RunTestListResourceVersionMatch),

		newCase(on, "Watch", nil, storagetesting.RunTestWatch),
		newCase(on, "DeleteTriggerWatch", nil, storagetesting.RunTestDeleteTriggerWatch),
		newCase(on, "WatchFromNonZero", nil, storagetesting.RunTestWatchFromNonZero),
		newCase(on, "WatchContextCancel", nil, storagetesting.RunTestWatchContextCancel),
		newCase(on, "WatcherTimeout", nil, storagetesting.RunTestWatcherTimeout),
		newCase(on, "WatchDeleteEventObjectHaveLatestRV", nil, storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
		newCase(on, "WatchInitializationSignal", nil, storagetesting.RunTestWatchInitializationSignal),
		newCase(on, "SendInitialEventsBackwardCompatibility", nil, storagetesting.RunSendInitialEventsBackwardCompatibility),
	}
}
