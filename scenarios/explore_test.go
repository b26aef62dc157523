package scenarios_test

import (
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/sim"
	"snowglobe.test/scenarios/explore"
	"snowglobe.test/scenarios/explore/worker"
	"snowglobe.test/scenarios/script"
)

var (
	seeds   = flag.Int("seeds", 500, "how many runs TestPlants makes at most for each plant, in sim mode")
	workers = flag.Int("workers", 2, "how many at once")
	limit   = flag.Duration("limit", 5*time.Minute, "how long TestPlants looks for each plant")
	shrink  = flag.Int("shrink", 0, "in how many runs a failure is shrunk at most; 0 is the default of explore")
	history = flag.Int("histories", 0, "how many runs without a plant TestHistories makes; 0 skips it")
	corpus  = flag.String("corpus", "", "the folder that keeps what TestPlants and TestHistories find, in a folder for each plant")
)

// neutral starts servers, creates, lists, watches, and starts a server again.
func neutral(t *testing.T) script.Script {
	t.Helper()
	text, err := os.ReadFile("explore/testdata/neutral.txtar")
	require.NoError(t, err)
	return script.Parse("neutral.txtar", text)
}

// program is the file of this test binary.
func program(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	return program
}

// search explores the neutral script in processes of this test binary.
func search(t *testing.T, config explore.Config) explore.Report {
	t.Helper()
	config.Script, config.Runner, config.Workers = neutral(t), worker.Process{Program: program(t)}, *workers
	config.Boots = true
	folder := t.TempDir()
	if *corpus != "" {
		folder = *corpus + "/" + t.Name()
	}
	var err error
	config.Corpus, err = explore.OpenCorpus(folder)
	require.NoError(t, err)
	report, err := config.Explore(t.Context())
	require.NoError(t, err)
	t.Log(report.Text())
	return report
}

// TestPlants finds each plant in the neutral script. It takes minutes, and is about
// what a seed decides: run it in sim mode, by
//
//	go run ./cmd/snowglobe test ./scenarios -run TestPlants -timeout 60m -v
func TestPlants(t *testing.T) {
	if !sim.Enabled() {
		t.Skip("not in sim mode, where a run can be repeated")
	}
	for plant, p := range plants {
		t.Run(plant, func(t *testing.T) {
			checkShown(t, plant, p)
			t.Setenv(plantVariable, plant)
			caused := func(f *explore.Found) bool { return p.causes.MatchString(f.Failure.Text) }
			report := search(t, explore.Config{
				Runs: *seeds, For: *limit, Shrink: *shrink,
				Enough: func(found []*explore.Found) bool { return slices.ContainsFunc(found, caused) },
			})
			i := slices.IndexFunc(report.Failures, caused)
			require.GreaterOrEqual(t, i, 0, "not found in %d runs", report.Runs)
			found := report.Failures[i]
			assert.Less(t, found.Operations, 30, "the operations it takes")
			text, err := os.ReadFile(found.File)
			require.NoError(t, err)
			t.Logf("%s", text)
		})
	}
}

// checkShown checks that the script fails under the plant's rule, and passes under it
// without the plant.
func checkShown(t *testing.T, name string, p plant) {
	t.Helper()
	plan, err := fault.ParsePlan("shown", p.shown, nil)
	require.NoError(t, err)
	task := explore.Case{Seed: 1, Plan: plan}.Task(neutral(t))
	run := func(planted string) *explore.Failure {
		t.Setenv(plantVariable, planted)
		outcome, err := worker.Process{Program: program(t)}.Run(t.Context(), task)
		require.NoError(t, err)
		return outcome.Failure
	}
	assert.Nil(t, run(""), "without the plant, under %q", p.shown)
	failure := run(name)
	assert.True(t, failure != nil && p.causes.MatchString(failure.Text), "with the plant, under %q, the failure is %+v", p.shown, failure)
}

// TestHistories shows that checkers accept what a server without a plant does.
func TestHistories(t *testing.T) {
	if *history == 0 {
		t.Skip("it takes long; say how many with -histories")
	}
	report := search(t, explore.Config{Runs: *history})
	for _, found := range report.Failures {
		assert.NotEqual(t, explore.Broken, found.Failure.Kind, "a checker rejects what upstream does: %s", found.Failure.Text)
	}
}

// TestExplore explores a little in any build.
func TestExplore(t *testing.T) {
	report := search(t, explore.Config{Runs: 2})
	assert.True(t, report.Accepted == 2 && report.New != 0 && report.Spent.Boots >= 3*report.Runs, "two runs of a script that passes: %+v", report)
}
