package cluster_test

import (
	"testing"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/storagetest"
)

func TestSnapshots(t *testing.T) { storagetest.RunSnapshots(t, newStore(t).(storage.Snapshotter)) }
