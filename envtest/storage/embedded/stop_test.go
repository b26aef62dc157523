package embedded

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStopNames has an etcd hang: its last transaction waits for one that does not end.
func TestStopNames(t *testing.T) {
	store := New(Config{})
	require.NoError(t, store.Start(t.Context()))
	tx := store.server.Etcd().Server.Backend().BatchTx()
	tx.Lock()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := store.Stop(ended)
	tx.Unlock()
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "stop embedded etcd: it is still stopping: context canceled; what is left (")
	require.ErrorContains(t, err, ", of etcdserver.(*EtcdServer).")
	require.ErrorContains(t, err, "\tgo.etcd.io/etcd/server/v3/")
	require.NoError(t, store.Stop(t.Context()), "a second call waits for the rest")
}
