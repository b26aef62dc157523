package embedded_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/internal/listeners"
)

// TestListeners looks for doors into the store: whoever can post to etcd's peer listener
// can write anything.
func TestListeners(t *testing.T) {
	store := embedded.New(embedded.Config{})
	require.NoError(t, store.Start(t.Context()))
	defer func() { assert.NoError(t, store.Stop(context.Background())) }()
	all, err := listeners.Of(os.Getpid())
	require.NoError(t, err)
	assert.Len(t, all, 2, "the sockets of clients and peers")
	for _, l := range all {
		open, err := l.OpenToOthers()
		require.NoError(t, err)
		assert.Empty(t, open)
	}
}
