package consumer

import (
	"os"
	"testing"

	"snowglobe.test/envtest/pool"
)

// TestMain lets tests have a control plane in turn, reset in between, instead of one each.
func TestMain(m *testing.M) { os.Exit(pool.Tests(m).Run()) }
