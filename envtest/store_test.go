package envtest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	etcd "go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/memory"
)

var (
	errBroken = errors.New("the disk is full of snow")
	errStuck  = errors.New("the door is frozen shut")
)

func TestLaunchStopsStoreThatDoesNotStart(t *testing.T) {
	store := &brokenStore{Backend: memory.New("broken"), starts: errBroken, stops: errStuck}
	cp, err := envtest.Launch(t.Context(), envtest.WithStore(store))
	assert.Nil(t, cp, "Launch returned a control plane and the error %v", err)
	for _, want := range []error{errBroken, errStuck} {
		assert.ErrorIs(t, err, want)
	}
	assert.Equal(t, []string{"Start", "Stop"}, store.called)
}

func TestLaunchStopsStoreWithoutClient(t *testing.T) {
	store := &brokenStore{Backend: memory.New("broken"), connect: func() error { return errBroken }}
	_, err := envtest.Launch(t.Context(), envtest.WithStore(store))
	require.ErrorIs(t, err, errBroken)
	// That one error and no other: nothing of the half-made chain is left over.
	assert.EqualError(t, err, "start control plane: start chain: stage generic: storage factory: "+errBroken.Error())
	assert.Equal(t, []string{"Start", "Client", "Stop"}, store.called)
}

func TestStopReportsStoreThatDoesNotStop(t *testing.T) {
	store := &brokenStore{Backend: memory.New("stuck"), stops: errStuck}
	cp, err := envtest.Launch(t.Context(), envtest.WithStore(store))
	require.NoError(t, err)
	first := cp.Stop(t.Context())
	assert.ErrorIs(t, first, errStuck, "Stop")
	assert.ErrorIs(t, cp.Stop(t.Context()), errStuck, "Stop, a second time; the first said: %v", first)
	assert.Equal(t, 1, len(slices.DeleteFunc(store.called, func(call string) bool { return call != "Stop" })))
}

// TestSharedStoreIsLeftAlone runs a control plane that must neither start nor stop its store.
func TestSharedStoreIsLeftAlone(t *testing.T) {
	real := memory.New("shared")
	require.NoError(t, real.Start(t.Context()))
	defer func() {
		assert.NoError(t, real.Stop(context.WithoutCancel(t.Context())))
	}()
	store := &brokenStore{Backend: real}
	cp, err := envtest.Launch(t.Context(), envtest.WithStore(storage.Shared{Backend: store}))
	require.NoError(t, err)
	require.NoError(t, cp.Stop(t.Context()))
	assert.Empty(t, slices.DeleteFunc(store.called, func(call string) bool { return call == "Client" }))
	client, err := real.Client()
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	left, err := client.KV.Get(t.Context(), "/registry/namespaces/default")
	assert.True(t, err == nil && len(left.Kvs) == 1, "the namespace the control plane made: %v, error %v; it must outlive the control plane", left, err)
}

// brokenStore is a real store that fails on demand, and says what was asked of it.
type brokenStore struct {
	storage.Backend
	connect       func() error // nil: it connects
	starts, stops error

	mu     sync.Mutex
	called []string
}

func (b *brokenStore) call(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.called = append(b.called, name)
}

// Start implements storage.Backend.
func (b *brokenStore) Start(ctx context.Context) error {
	b.call("Start")
	return errors.Join(b.starts, b.Backend.Start(ctx))
}

// Client implements storage.Backend.
func (b *brokenStore) Client() (*etcd.Client, error) {
	b.call("Client")
	if b.connect != nil {
		if err := b.connect(); err != nil {
			return nil, err
		}
	}
	return b.Backend.Client()
}

// Stop implements storage.Backend.
func (b *brokenStore) Stop(ctx context.Context) error {
	if ctx.Err() != nil {
		b.call("Stop, with no time left")
	} else {
		b.call("Stop")
	}
	return errors.Join(b.stops, b.Backend.Stop(ctx))
}
