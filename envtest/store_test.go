package envtest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/mock"

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
	if cp != nil {
		t.Errorf("Launch returned a control plane and the error %v", err)
	}
	for _, want := range []error{errBroken, errStuck} {
		if !errors.Is(err, want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

func TestLaunchStopsStoreWithoutClient(t *testing.T) {
	store := storagemock.NewBackend(t)
	store.EXPECT().Start(mock.Anything).Return(nil).Once()
	store.EXPECT().Endpoints().Return(storage.Endpoints{URLs: []string{"http://nowhere.test:2379"}})
	store.EXPECT().Client().Return(nil, errBroken).Once()
	store.EXPECT().Stop(mock.Anything).RunAndReturn(stillOpen(t, nil)).Once()
	_, err := envtest.Launch(t.Context(), envtest.WithStore(store))
	if !errors.Is(err, errBroken) {
		t.Fatalf("error %v does not say %q", err, errBroken)
	}
	// That one error and no other: nothing of the half-made chain is left over.
	if want := "start control plane: start chain: stage generic: storage factory: " + errBroken.Error(); err.Error() != want {
		t.Errorf("error:\n%v\nwant:\n%s", err, want)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	first := cp.Stop(t.Context())
	if !errors.Is(first, errStuck) {
		t.Errorf("Stop: %v, want %q", first, errStuck)
	}
	if again := cp.Stop(t.Context()); !errors.Is(again, errStuck) {
		t.Errorf("Stop, a second time: %v, want what the first said: %v", again, first)
	}
}

// TestSharedStoreIsLeftAlone would panic in the mock if the control plane
// started or stopped the store.
func TestSharedStoreIsLeftAlone(t *testing.T) {
	real := memory.New("shared")
	if err := real.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := real.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	store := storagemock.NewBackend(t)
	serve(store, real)
	cp, err := envtest.Launch(t.Context(), envtest.WithSharedStore(store))
	if err != nil {
		t.Fatal(err)
	}
	if err := cp.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := real.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	left, err := client.KV.Get(t.Context(), "/registry/namespaces/default")
	if err != nil || len(left.Kvs) != 1 {
		t.Errorf("the namespace the control plane made: %v, error %v; it must outlive the control plane", left, err)
	}
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
		if ctx.Err() != nil {
			t.Errorf("Stop got a context that is over: %v", context.Cause(ctx))
		}
		return err
	}
}
