package embedded_test

import (
	"testing"

	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/storage/storagetest"
)

func TestSnapshots(t *testing.T) { storagetest.RunSnapshots(t, embedded.New(embedded.Config{})) }
