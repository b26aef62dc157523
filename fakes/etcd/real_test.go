package etcd

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/fakes/etcd/internal/realetcd"
)

// shortDir returns a folder with a path short enough for sockets.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "e")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// startReal starts an embedded etcd that stops when the test ends.
func startReal(t testing.TB) *clientv3.Client {
	t.Helper()
	real, err := realetcd.Start(shortDir(t))
	require.NoError(t, err)
	t.Cleanup(real.Close)
	c, err := real.Client()
	require.NoError(t, err)
	return c
}
