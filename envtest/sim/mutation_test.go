package sim

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/hostile"
)

var mutate = flag.Bool("mutate", false, "build without each edit in turn, and show that a run then differs")

// needed are edits that others do not build without.
var needed = []string{"bubble-state.diff", "goroutine-stream.diff", "mutex-waits.diff", "object-names.diff"}

// rare are edits whose occasion this test does not have: a garbage collection between two
// large allocations, and a process that is stopped for over a minute (TestStopped).
var rare = []string{"preemption-memclr.diff", "stopped-process.diff"}

// invisible are edits without which runs are the same, but the heap has no limit, or each run takes longer.
var invisible = []string{"gc-at-rest.diff", "scavenger.diff", "sysmon.diff"}

// TestEachEdit leaves out one edit, and looks for a workload whose runs then differ.
func TestEachEdit(t *testing.T) {
	if !*mutate {
		t.Skip("it builds Go's runtime again for each edit: run it with -mutate")
	}
	here, edits := installedEdits(t)
	here, err := here.outOfModules(t.TempDir())
	require.NoError(t, err)
	for i, left := range edits {
		t.Run(left.name, func(t *testing.T) {
			if slices.Contains(needed, left.name) {
				t.Skip("others do not build without it")
			}
			if slices.Contains(rare, left.name) {
				t.Skip("runs differ too rarely without it")
			}
			program := buildWith(t, here, slices.Delete(slices.Clone(edits), i, i+1))
			workload, differs := findDifference(t, program)
			t.Logf("differs: %t %s", differs, workload)
			assert.True(t, differs || slices.Contains(invisible, left.name),
				"without this edit all runs are the same: is it needed?")
		})
	}
}

// buildWith builds the program of testdata with some of the edits.
func buildWith(t *testing.T, here toolchain, some []edit) string {
	t.Helper()
	source := filepath.Join(here.root, "src")
	files, err := edited(os.DirFS(source), some)
	require.NoError(t, err)
	folder := t.TempDir()
	here.overlay, err = write(folder, source, files)
	require.NoError(t, err)
	program := filepath.Join(folder, "decided")
	out, err := here.command(t.Context(), "build", nil, "-o", program, "./testdata/decided").CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// findDifference runs every workload often, quietly and disturbed.
func findDifference(t *testing.T, program string) (workload string, differs bool) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	environment, err := hostile.Environment(t.TempDir())
	require.NoError(t, err)
	if differs := searchDiffers(t, program); differs != "" {
		return differs, true
	}
	for _, workload := range []string{"selects", "goroutines", "long", "maps", "contexts", "timers", "waits", "bytes", "files", "signals", "garbage", "race", "world"} {
		first := ""
		for i := range 12 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // some then never end
			defer cancel()
			command := exec.CommandContext(ctx, program, workload, "1")
			if i%2 == 1 {
				command.Args = append(command.Args, "disturbed")
				command.Env = append(append(os.Environ(), environment...), "TMPDIR="+os.TempDir(), "LONG="+strings.Repeat("x", 700*i))
			}
			out, err := command.CombinedOutput()
			if err != nil {
				return workload + ": " + err.Error(), true
			}
			if i > 0 && string(out) != first {
				return workload, true
			}
			first = string(out)
		}
	}
	return "", false
}

// searchDiffers names what a Search does not find that it finds with all edits.
func searchDiffers(t *testing.T, program string) string {
	t.Helper()
	say := func(variable string, args ...string) string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, program, args...)
		command.Env = append(os.Environ(), variable)
		out, err := command.CombinedOutput()
		return fmt.Sprint(string(out), err)
	}
	switch {
	case strings.Contains(say(strategyVariable+"=walk", "orders", "1"), ": [1]"):
		return "orders"
	case !strings.HasPrefix(say(strategyVariable+"=walk", "held", "1"), "at least true"):
		return "held"
	case say(SeedVariable+"=1", "bytes", "own") == say(SeedVariable+"=2", "bytes", "own"):
		return "a seed of its own"
	}
	return ""
}
