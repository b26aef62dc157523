package scenarios_test

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/explore/worker"
)

// plantVariable of the environment names the bug in a run.
const plantVariable = "SNOWGLOBE_TEST_PLANT"

// TestMain makes the test binary the program that runs scripts for explore as well, with a
// bug in it. It trades memory for time: collecting the garbage of one control plane after
// another is a quarter of the CPU time of these tests.
func TestMain(m *testing.M) {
	if !worker.Requested() {
		debug.SetGCPercent(400)
		os.Exit(m.Run())
	}
	var opts scenarios.Options
	if plant, ok := plants[os.Getenv(plantVariable)]; ok {
		opts = plant.options()
	}
	if err := worker.Serve(context.Background(), os.Stdin, os.Stdout, opts); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
