package memory_test

import (
	"strings"
	"testing"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/envtest/storage/storagetest"
)

// TestContract covers both ways into the store: in the process, and gRPC.
func TestContract(t *testing.T) {
	storagetest.Run(t, map[string]storagetest.Opener{
		"client":    storagetest.Each(newStore, storagetest.ByClient),
		"endpoints": storagetest.Each(newStore, storagetest.ByEndpoints),
	})
}

// newStore returns a store with a name of its own, because upstream keeps state per
// endpoint for the whole process.
func newStore(t *testing.T) storage.Backend {
	return memory.New(strings.Map(func(r rune) rune {
		if strings.ContainsRune("/_=,", r) {
			return '-'
		}
		return r
	}, t.Name()))
}
