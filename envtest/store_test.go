package envtest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/envtest/storage/storagemock"
)

// The stores of this file are mocks: no real one fails on demand, and none says
// how often it was started and stopped.

var (
	errBroken = errors.New("the disk is full of snow")
	errStuck  = errors.New("the door is frozen shut")
)

func TestLaunchStopsStoreThatDoesNotStart(t *testing.T) {
	store := storagemock.NewBackend(t)
	store.EXPECT().Start(mock.Anything).Return(errBroken).Once()
	store.EXPECT().Stop(mock.Anything).RunAndReturn(stillOpen(t, errStuck)).Once()
	cp, err := envtest.Launch(t.Context(), envtest.WithStore(store))
	assert.Nil(t, cp, "Launch returned a control plane and the error %v", err)
	for _, want := range []error{errBroken, errStuck} {
		assert.ErrorIs(t, err, want)
	}
}

func TestLaunchStopsStoreWithoutClient(t *testing.T) {
	store := storagemock.NewBackend(t)
	store.EXPECT().Start(mock.Anything).Return(nil).Once()
	store.EXPECT().Endpoints().Return(storage.Endpoints{URLs: []string{"http://nowhere.test:2379"}})
	store.EXPECT().Client().Return(nil, errBroken).Once()
	store.EXPECT().Stop(mock.Anything).RunAndReturn(stillOpen(t, nil)).Once()
	_, err := envtest.Launch(t.Context(), envtest.WithStore(store))
	require.ErrorIs(t, err, errBroken)
	// That one error and no other: nothing of the half-made chain is left over.
	assert.EqualError(t, err, "start control plane: start chain: stage generic: storage factory: "+errBroken.Error())
}

func TestStopReportsStoreThatDoesNotStop(t *testing.T) {
	real := memory.New("stuck")
	store := storagemock.NewBackend(t)
	store.EXPECT().Start(mock.Anything).RunAndReturn(real.Start).Once()
	serve(store, real)
	store.EXPECT().Stop(mock.Anything).RunAndReturn(func(ctx context.Context) error {
		return errors.Join(real.Stop(ctx), errStuck)
	}).Once()
	cp, err := envtest.Launch(t.Context(), envtest.WithStore(store))
	require.NoError(t, err)
	first := cp.Stop(t.Context())
	assert.ErrorIs(t, first, errStuck, "Stop")
	assert.ErrorIs(t, cp.Stop(t.Context()), errStuck, "Stop, a second time; the first said: %v", first)
}

// TestSharedStoreIsLeftAlone would panic in the mock if the control plane
// started or stopped the store.
func TestSharedStoreIsLeftAlone(t *testing.T) {
	real := memory.New("shared")
	require.NoError(t, real.Start(t.Context()))
	defer func() {
		assert.NoError(t, real.Stop(context.WithoutCancel(t.Context())))
	}()
	store := storagemock.NewBackend(t)
	serve(store, real)
	cp, err := envtest.Launch(t.Context(), envtest.WithStore(storage.Shared{Backend: store}))
	require.NoError(t, err)
	require.NoError(t, cp.Stop(t.Context()))
	client, err := real.Client()
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	left, err := client.KV.Get(t.Context(), "/registry/namespaces/default")
	assert.True(t, err == nil && len(left.Kvs) == 1, "the namespace the control plane made: %v, error %v; it must outlive the control plane", left, err)
}

// serve lets a mock hand out what a real store has, any number of times.
func serve(store *storagemock.Backend, real storage.Backend) {
	store.EXPECT().Endpoints().RunAndReturn(real.Endpoints)
	store.EXPECT().Client().RunAndReturn(real.Client)
	store.EXPECT().String().RunAndReturn(real.String).Maybe()
}

// stillOpen is a Stop that insists on a context that leaves it time.
func stillOpen(t *testing.T, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		assert.NoError(t, context.Cause(ctx), "Stop got a context that is over")
		return err
	}
}
