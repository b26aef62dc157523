//go:build snowglobesim

package soak_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/scenarios"
)

// allWorkloads are those here and the scripts of the library.
func allWorkloads() []string {
	names := slices.Sorted(maps.Keys(workloads))
	for _, script := range scenarios.Library() {
		names = append(names, scriptPrefix+script.Name)
	}
	return names
}

// TestSeedIsOneRun runs one seed again and again, half of the times beside busy
// processes and with a longer environment, so that the heap begins elsewhere. All
// that is recorded is the same, byte for byte. The log has its hash, for comparison
// with that of another checkout.
func TestSeedIsOneRun(t *testing.T) {
	for _, name := range allWorkloads() {
		t.Run(name, func(t *testing.T) {
			first := runSeed(t, name, 1)
			for run := 1; run < *seedRuns; run++ {
				var environment []string
				if run == (*seedRuns+1)/2 {
					keepBusy(t)
				}
				if run >= (*seedRuns+1)/2 {
					environment = []string{"SNOWGLOBE_TEST_LONG=" + strings.Repeat("x", 1000+100*run)}
				}
				again := runSeed(t, name, 1, environment...)
				if again.canonical != first.canonical {
					t.Fatalf("run %d: the canonical trace: %s", run, trace.Diff(first.canonical, again.canonical))
				}
				if again.full != first.full {
					t.Fatalf("run %d: the full trace: %s", run, trace.Diff(first.full, again.full))
				}
			}
			t.Logf("%d runs, %d events, %x", *seedRuns, strings.Count(first.full, "\n"), sha256.Sum256([]byte(first.full)))
		})
	}
}

// TestSeedsExplore shows that seeds are different runs: of a hundred, 95 have a
// full trace that no other has.
func TestSeedsExplore(t *testing.T) {
	for _, name := range allWorkloads() {
		t.Run(name, func(t *testing.T) {
			full, canonical := map[string]bool{}, map[string]bool{}
			for seed := range *seeds {
				run := runSeed(t, name, uint64(seed))
				full[run.full], canonical[run.canonical] = true, true
			}
			t.Logf("%d seeds: %d full traces, %d canonical ones", *seeds, len(full), len(canonical))
			if len(full)*100 < *seeds*95 {
				t.Errorf("%d seeds gave %d full traces", *seeds, len(full))
			}
		})
	}
}

// keepBusy runs two endless loops beside, until the test ends.
func keepBusy(t *testing.T) {
	for range 2 {
		loop := exec.CommandContext(t.Context(), os.Args[0])
		loop.Env = append(os.Environ(), fmt.Sprintf("%s=%s", workloadEnv, busy))
		if err := loop.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = loop.Process.Kill()
			_ = loop.Wait()
		})
	}
}
