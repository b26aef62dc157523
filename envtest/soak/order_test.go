//go:build soak && !snowglobesim

package soak_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/envtest/trace"
)

// TestSameSeedSameTrace runs one seed in processes with one and with two
// processors, and in the environment of another user's machine. Without sim mode the
// seed decides the order of operations at the edges; that is enough for what clients of
// these workloads observe, byte by byte, as long as work takes no time: how many turns
// there were before is not decided. It is not enough for the other workloads, nor for most
// scripts of the library, whose operations take time: their canonical traces differ from run
// to run on one machine, in milliseconds and in the order of what runs side by side. Sim mode
// compares them all: see TestElsewhere.
func TestSameSeedSameTrace(t *testing.T) {
	for _, workload := range []string{"mixed", "chances"} {
		t.Run(workload, func(t *testing.T) {
			first := canonical(t, workload, 1, 1)
			for run := 1; run < *seedRuns; run++ {
				if again := canonical(t, workload, 1, 1+run%2); again != first {
					t.Fatalf("run %d: %s", run, trace.DivergenceOf(first, again).Words("the first run", "the other"))
				}
			}
			if again := canonical(t, workload, 1, 1, elsewhere(t)...); again != first {
				t.Fatalf("in a hostile environment: %s", trace.DivergenceOf(first, again).Words("the first run", "the other"))
			}
		})
	}
}

// TestSeedsDiffer shows that seeds are different runs: nine in ten have a trace
// that no other has.
func TestSeedsDiffer(t *testing.T) {
	different := map[string]bool{}
	for seed := range *seeds {
		different[canonical(t, "mixed", uint64(seed), 1+seed%2)] = true
	}
	assert.GreaterOrEqual(t, len(different), *seeds*9/10, "the traces of %d seeds", *seeds)
}

// canonical is the canonical trace of a workload whose work takes no time.
func canonical(t *testing.T, workload string, seed uint64, processors int, environment ...string) string {
	t.Helper()
	environment = append(environment, fmt.Sprintf("GOMAXPROCS=%d", processors), instantEnv+"=true")
	return runSeed(t, workload, seed, environment...).canonical
}
