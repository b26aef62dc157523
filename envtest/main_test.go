package envtest_test

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// TestMain trades memory for time: collecting the garbage of one control plane
// after another is a quarter of the CPU time of these tests. Most of those that run in
// parallel wait.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	_ = flag.Set("test.parallel", "4")
	os.Exit(m.Run())
}
