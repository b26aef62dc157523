//go:build soak && snowglobesim

package soak_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

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
// processes and in the environment of another user's machine, which is longer, so
// that the heap begins elsewhere. All that is recorded is the same, byte for byte. The log
// has its hash, for comparison with that of another checkout.
func TestSeedIsOneRun(t *testing.T) {
	for _, name := range allWorkloads() {
		t.Run(name, func(t *testing.T) {
			first := runSeed(t, name, 1)
			again := func(run int, environment ...string) error {
				again, err := trySeed(t, name, 1, environment...)
				if err == nil {
					err = compare(first, again)
				}
				if err != nil {
					return fmt.Errorf("run %d: %w", run, err)
				}
				return nil
			}
			half := (*seedRuns + 1) / 2
			sideBySide(t, 1, half, func(run int) error { return again(run) })
			keepBusy(t)
			environment := elsewhere(t)
			sideBySide(t, half, *seedRuns, func(run int) error {
				return again(run, append(environment[:len(environment):len(environment)], "SNOWGLOBE_TEST_LONG="+strings.Repeat("x", 1000+100*run))...)
			})
			t.Logf("%d runs, %d events, %x", *seedRuns, strings.Count(first.full, "\n"), sha256.Sum256([]byte(first.full)))
		})
	}
}

// TestElsewhere runs seeds here and in the environment of another user's machine.
func TestElsewhere(t *testing.T) {
	for _, name := range allWorkloads() {
		t.Run(name, func(t *testing.T) {
			environment := elsewhere(t)
			sideBySide(t, 0, *seeds, func(seed int) error {
				here, err := trySeed(t, name, uint64(seed))
				if err != nil {
					return err
				}
				there, err := trySeed(t, name, uint64(seed), environment...)
				if err == nil {
					err = compare(here, there)
				}
				if err != nil {
					return fmt.Errorf("seed %d, elsewhere: %w", seed, err)
				}
				return nil
			})
		})
	}
}

// compare says where two runs of one seed differ.
func compare(first, again traces) error {
	if again.canonical != first.canonical {
		return fmt.Errorf("the canonical trace: %s\n%w", trace.DivergenceOf(first.canonical, again.canonical).Words("the first run", "the other"), kept(first, again))
	}
	if again.full != first.full {
		return fmt.Errorf("the full trace: %s\n%w", trace.DivergenceOf(first.full, again.full).Words("the first run", "the other"), kept(first, again))
	}
	return nil
}

// kept writes the full traces of two runs that differ, and says where.
func kept(first, again traces) error {
	dir, err := os.MkdirTemp("", "snowglobe-seeds-")
	if err != nil {
		return err
	}
	return errors.Join(
		fmt.Errorf("both are in %s", dir),
		os.WriteFile(filepath.Join(dir, "first.json"), []byte(first.full), 0o600),
		os.WriteFile(filepath.Join(dir, "again.json"), []byte(again.full), 0o600))
}

// TestSeedsExplore shows that seeds are different runs: of a hundred, 95 have a
// full trace that no other has.
func TestSeedsExplore(t *testing.T) {
	for _, name := range allWorkloads() {
		t.Run(name, func(t *testing.T) {
			full, canonical := make([][sha256.Size]byte, *seeds), make([][sha256.Size]byte, *seeds)
			sideBySide(t, 0, *seeds, func(seed int) error {
				run, err := trySeed(t, name, uint64(seed))
				full[seed], canonical[seed] = sha256.Sum256([]byte(run.full)), sha256.Sum256([]byte(run.canonical))
				return err
			})
			t.Logf("%d seeds: %d full traces, %d canonical ones", *seeds, distinct(full), distinct(canonical))
			assert.GreaterOrEqual(t, distinct(full)*100, *seeds*95, "%d seeds gave %d full traces", *seeds, distinct(full))
		})
	}
}

func distinct[T comparable](values []T) int {
	set := map[T]bool{}
	for _, value := range values {
		set[value] = true
	}
	return len(set)
}

// sideBySide calls run with each number of [from, to), as many at a time as there are
// CPUs: a process in sim mode uses one.
func sideBySide(t *testing.T, from, to int, run func(i int) error) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for i := from; i < to; i++ {
		group.Go(func() error { return run(i) })
	}
	require.NoError(t, group.Wait())
}

// keepBusy runs two endless loops beside, until the test ends.
func keepBusy(t *testing.T) {
	for range 2 {
		keepOneBusy(t)
	}
}
