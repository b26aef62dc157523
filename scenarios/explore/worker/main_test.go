package worker_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/explore/worker"
)

// plantVariable of the environment names the bug in a run.
const plantVariable = "SNOWGLOBE_TEST_PLANT"

// TestMain makes the test binary the program that runs scripts, with a bug in it.
func TestMain(m *testing.M) {
	if !worker.Requested() {
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
