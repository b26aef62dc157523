//go:build snowglobesim

package soak_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

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
// processes and with a longer environment, so that the heap begins elsewhere. All
// that is recorded is the same, byte for byte. The log has its hash, for comparison
// with that of another checkout.
func TestSeedIsOneRun(t *testing.T) {
	for _, name := range allWorkloads() {
		t.Run(name, func(t *testing.T) {
			first := runSeed(t, name, 1)
			again := func(run int, environment ...string) error {
				again, err := trySeed(t, name, 1, environment...)
				switch {
				case err != nil:
					return err
				case again.canonical != first.canonical:
					return fmt.Errorf("run %d: the canonical trace: %s\n%w", run, trace.Diff(first.canonical, again.canonical), kept(first, again))
				case again.full != first.full:
					return fmt.Errorf("run %d: the full trace: %s\n%w", run, trace.Diff(first.full, again.full), kept(first, again))
				}
				return nil
			}
			half := (*seedRuns + 1) / 2
			sideBySide(t, 1, half, func(run int) error { return again(run) })
			keepBusy(t)
			sideBySide(t, half, *seedRuns, func(run int) error {
				return again(run, "SNOWGLOBE_TEST_LONG="+strings.Repeat("x", 1000+100*run))
			})
			t.Logf("%d runs, %d events, %x", *seedRuns, strings.Count(first.full, "\n"), sha256.Sum256([]byte(first.full)))
		})
	}
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
			if distinct(full)*100 < *seeds*95 {
				t.Errorf("%d seeds gave %d full traces", *seeds, distinct(full))
			}
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
	if err := group.Wait(); err != nil {
		t.Fatal(err)
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
