package client

import (
	"os"
	"testing"

	"snowglobe.test/envtest/client/internal/quick"
)

func TestMain(m *testing.M) { os.Exit(quick.Run(m)) }
