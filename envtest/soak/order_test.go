//go:build !snowglobesim

package soak_test

import (
	"fmt"
	"testing"

	"snowglobe.test/envtest/trace"
)

// TestSameSeedSameTrace runs one seed in processes with one and with two
// processors. Without sim mode the seed decides the order of operations at the
// edges; that is enough for what clients of this workload observe, byte by byte, as
// long as work takes no time: how many turns there were before is not decided.
func TestSameSeedSameTrace(t *testing.T) {
	first := mixedCanonical(t, 1, 1)
	for run := 1; run < *seedRuns; run++ {
		if again := mixedCanonical(t, 1, 1+run%2); again != first {
			t.Fatalf("run %d: %s", run, trace.Diff(first, again))
		}
	}
}

// TestSeedsDiffer shows that seeds are different runs: nine in ten have a trace
// that no other has.
func TestSeedsDiffer(t *testing.T) {
	different := map[string]bool{}
	for seed := range *seeds {
		different[mixedCanonical(t, uint64(seed), 1+seed%2)] = true
	}
	if len(different) < *seeds*9/10 {
		t.Errorf("%d seeds gave %d traces", *seeds, len(different))
	}
}

func mixedCanonical(t *testing.T, seed uint64, processors int) string {
	t.Helper()
	return runSeed(t, "mixed", seed, fmt.Sprintf("GOMAXPROCS=%d", processors), instantEnv+"=true").canonical
}
