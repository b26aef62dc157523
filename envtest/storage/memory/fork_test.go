package memory_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/memory"
)

// TestFork shows that a fork starts from the snapshot and then goes its own way.
func TestFork(t *testing.T) {
	ctx := t.Context()
	parent := memory.New("parent")
	_, err := parent.Snapshot(ctx)
	assert.Error(t, err, "took a snapshot of a store that was not started")
	require.NoError(t, parent.Start(ctx))
	value := func(store storage.Backend) string {
		t.Helper()
		client, err := store.Client()
		require.NoError(t, err)
		got, err := client.KV.Get(ctx, "key")
		require.NoError(t, err)
		require.Len(t, got.Kvs, 1)
		return string(got.Kvs[0].Value)
	}
	write := func(store storage.Backend, value string) {
		t.Helper()
		client, err := store.Client()
		require.NoError(t, err)
		_, err = client.KV.Put(ctx, "key", value)
		require.NoError(t, err)
	}
	write(parent, "shared")
	from, err := parent.Snapshot(ctx)
	require.NoError(t, err)
	write(parent, "parent")
	fork, err := parent.Fork("fork", from)
	require.NoError(t, err)
	require.NoError(t, parent.Stop(ctx))
	require.NoError(t, fork.Start(ctx)) // it outlives its parent
	assert.Equal(t, "shared", value(fork), "what the fork begins with")
	write(fork, "fork")
	assert.Equal(t, "fork", value(fork), "what the fork has")
	assert.NoError(t, fork.Stop(ctx))
}
