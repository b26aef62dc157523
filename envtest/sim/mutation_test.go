package sim

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var mutate = flag.Bool("mutate", false, "build without each edit in turn, and show that a run then differs")

// needed are edits that others do not build without.
var needed = []string{
	"a bubble has its own streams and its own run queue",
	"each goroutine has a stream of its own",
	"an object has a name that stands for its address",
}

// rare are edits without which one run of a control plane in 25 differed, beside three
// endless loops and with a sysmon made to look 500 times as often as Go's: too few for
// this test.
var rare = []string{
	"as above: a goroutine of a bubble may have taken the place",
	"as above: the signal may come",
}

// invisible is an edit without which runs are the same, but the heap has no limit.
const invisible = "so garbage is collected where nothing runs"

// TestEachEdit leaves out one edit, with those after it that only say "as above",
// and looks for a workload whose runs then differ.
func TestEachEdit(t *testing.T) {
	if !*mutate {
		t.Skip("it builds Go's runtime again for each edit: run it with -mutate")
	}
	_, goRoot, err := installed(t.Context(), ".")
	require.NoError(t, err)
	for first := 0; first < len(edits); {
		last := first + 1
		for last < len(edits) && edits[last].why == "as above" {
			last++
		}
		rest := slices.Concat(edits[:first], edits[last:])
		why := edits[first].why
		first = last
		t.Run(why, func(t *testing.T) {
			said := func(prefix string) bool { return strings.HasPrefix(why, prefix) }
			if slices.ContainsFunc(needed, said) {
				t.Skip("others do not build without it")
			}
			if slices.ContainsFunc(rare, said) {
				t.Skip("runs differ too rarely without it")
			}
			program := buildWith(t, goRoot, rest)
			workload, differs := findDifference(t, program)
			t.Logf("differs: %t %s", differs, workload)
			if !differs && !said(invisible) {
				t.Error("without this edit all runs are the same: is it needed?")
			}
		})
	}
}

// buildWith builds the program of testdata with some of the edits.
func buildWith(t *testing.T, goRoot string, some []edit) string {
	t.Helper()
	source := filepath.Join(goRoot, "src")
	files, err := edited(os.DirFS(source), some)
	require.NoError(t, err)
	folder := t.TempDir()
	list, err := write(folder, source, files)
	require.NoError(t, err)
	program := filepath.Join(folder, "decided")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay="+list, "-tags="+Tag, "-o", program, "./testdata/decided").CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// findDifference runs every workload often, quietly and disturbed.
func findDifference(t *testing.T, program string) (workload string, differs bool) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	for _, workload := range []string{"selects", "goroutines", "long", "maps", "contexts", "timers", "bytes", "files", "signals", "garbage", "race"} {
		first := ""
		for i := range 12 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // some then never end
			defer cancel()
			command := exec.CommandContext(ctx, program, workload, "1")
			if i%2 == 1 {
				command.Args = append(command.Args, "disturbed")
				command.Env = append(os.Environ(), "LONG="+strings.Repeat("x", 700*i))
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
