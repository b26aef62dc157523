package lies_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain trades memory for time: collecting the garbage of one control plane
// after another is a quarter of the CPU time of these tests.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
