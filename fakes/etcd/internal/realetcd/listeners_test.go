package realetcd_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/fakes/etcd/internal/realetcd"
	"snowglobe.test/internal/listeners"
)

func TestListeners(t *testing.T) {
	dir, err := os.MkdirTemp("", "e") // short, and private
	require.NoError(t, err)
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := realetcd.Start(dir)
	require.NoError(t, err)
	defer server.Close()
	all, err := listeners.Of(os.Getpid())
	require.NoError(t, err)
	assert.Len(t, all, 2, "the sockets of clients and peers")
	for _, l := range all {
		open, err := l.OpenToOthers()
		require.NoError(t, err)
		assert.Empty(t, open)
	}
}
