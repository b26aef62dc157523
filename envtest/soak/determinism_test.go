//go:build soak

package soak_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/hostile"
	"snowglobe.test/scenarios"
)

var (
	seedRuns = flag.Int("seed-runs", 2, "how often a test runs one seed, each time in a process of its own")
	seeds    = flag.Int("seeds", 3, "how many seeds a test runs")
)

// These make a process of these tests run one workload, instead of tests, and
// write its traces to files.
const (
	workloadEnv  = "SNOWGLOBE_TEST_WORKLOAD"
	seedEnv      = "SNOWGLOBE_TEST_SEED"
	canonicalEnv = "SNOWGLOBE_TEST_CANONICAL"
	fullEnv      = "SNOWGLOBE_TEST_FULL"
	instantEnv   = "SNOWGLOBE_TEST_INSTANT" // work takes no time
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // memory for time, as in envtest
	name := os.Getenv(workloadEnv)
	switch name {
	case "":
		os.Exit(m.Run())
	case busy:
		//lint:ignore SA5002 it is what keeps a processor busy
		for {
		}
	}
	if err := runWorkload(name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runWorkload runs a workload, or a script of the library, in this process.
func runWorkload(name string) error {
	if of, ok := strings.CutPrefix(name, endsPrefix); ok {
		return runEnds(of)
	}
	seed, err := strconv.ParseUint(os.Getenv(seedEnv), 10, 64)
	if err != nil {
		return err
	}
	if script, ok := strings.CutPrefix(name, scriptPrefix); ok {
		found, err := scenarios.Find(script)
		if err != nil {
			return err
		}
		result := scenarios.Run(context.Background(), found[0], scenarios.Options{Seed: &seed, FullTrace: true})
		return errors.Join(result.Err, writeTraces(result.Records))
	}
	w := workloads[name]
	options := append(w.options, envtest.WithSeed(seed), envtest.WithFullTrace())
	instant := os.Getenv(instantEnv) != ""
	if instant {
		options = append(options, envtest.WithoutLatency())
	}
	var recorder *trace.Recorder
	var records []trace.Record
	err = envtest.SimulateContext(func(ctx context.Context, cp *envtest.ControlPlane) error {
		recorder = cp.Trace()
		err := w.run(ctx, cp)
		records = recorder.Records()
		return err
	}, options...)
	if recorder != nil && !instant {
		records = recorder.Records() // with the shutdown, which only sim mode decides
	}
	return errors.Join(err, writeTraces(records))
}

// busy is the workload of a machine that has other things to do.
const busy = "busy"

// scriptPrefix begins the workloads that are scripts of the library.
const scriptPrefix = "script/"

// writeTraces writes what happened, in both forms.
func writeTraces(records []trace.Record) error {
	canonical, err := os.Create(os.Getenv(canonicalEnv))
	if err != nil {
		return err
	}
	full, err := os.Create(os.Getenv(fullEnv))
	if err != nil {
		return err
	}
	return errors.Join(trace.WriteCanonical(canonical, records), trace.WriteJSON(full, records), canonical.Close(), full.Close())
}

// elsewhere is the environment of another user's machine, without client-go's switches: they are
// for the clients of the workloads, which are the test's own and obey them.
func elsewhere(t *testing.T) []string {
	t.Helper()
	environment, err := hostile.Environment(t.TempDir())
	require.NoError(t, err)
	return slices.DeleteFunc(environment, func(variable string) bool { return strings.HasPrefix(variable, "KUBE_FEATURE_") })
}

// traces are what one run left.
type traces struct{ canonical, full string }

// runSeed is trySeed, and fails the test if the workload does.
func runSeed(t *testing.T, workload string, seed uint64, environment ...string) traces {
	t.Helper()
	run, err := trySeed(t, workload, seed, environment...)
	require.NoError(t, err)
	return run
}

// trySeed runs a workload in a process of its own.
func trySeed(t *testing.T, workload string, seed uint64, environment ...string) (traces, error) {
	t.Helper()
	canonical, full := filepath.Join(t.TempDir(), "canonical"), filepath.Join(t.TempDir(), "full")
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), append(environment,
		workloadEnv+"="+workload, seedEnv+"="+strconv.FormatUint(seed, 10), canonicalEnv+"="+canonical, fullEnv+"="+full)...)
	if out, err := child.CombinedOutput(); err != nil {
		return traces{}, fmt.Errorf("%s, seed %d: %w\n%s", workload, seed, err, out)
	}
	canonicalText, canonicalErr := os.ReadFile(canonical)
	fullText, fullErr := os.ReadFile(full)
	return traces{string(canonicalText), string(fullText)}, errors.Join(canonicalErr, fullErr, os.Remove(full), os.Remove(canonical))
}
