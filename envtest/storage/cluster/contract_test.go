package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/cluster"
	"snowglobe.test/envtest/storage/storagetest"
)

func TestContract(t *testing.T) {
	storagetest.Run(t, map[string]storagetest.Opener{"cluster": storagetest.Each(newStore, storagetest.ByClient)})
}

func newStore(t *testing.T) storage.Backend {
	store, err := cluster.New(cluster.Config{})
	require.NoError(t, err)
	return store
}
