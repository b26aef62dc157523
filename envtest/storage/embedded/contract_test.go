package embedded_test

import (
	"testing"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/storage/storagetest"
)

func TestContract(t *testing.T) {
	storagetest.Run(t, map[string]storagetest.Opener{"embedded": storagetest.Each(newStore, storagetest.ByClient)})
}

func newStore(*testing.T) storage.Backend { return embedded.New(embedded.Config{}) }
