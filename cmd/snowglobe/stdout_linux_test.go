package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/pages"
	"snowglobe.test/internal/sample"
)

// unwritten are commands that write to standard output, and how they exit when they can't:
// a verdict stands, and what could not be told is no success.
var unwritten = map[string]struct {
	args string
	want int
}{
	"run":                  {"run script.txtar", exitUnjudged},
	"run fails":            {"run fails.txtar", exitBroken},
	"run json":             {"run -o json fails.txtar", exitBroken},
	"run mutations":        {"run --mutations fails.txtar", exitBroken},
	"explore":              {"explore --sim=false --seeds 1 script.txtar", exitUnjudged},
	"explore replay":       {"explore --sim=false --seeds 1 --replay fails.txtar", exitBroken},
	"scenario fmt":         {"scenario fmt untidy.txtar", exitUnjudged},
	"scenario fmt judges":  {"scenario fmt --check untidy.txtar", exitBroken},
	"scenario lint":        {"scenario lint script.txtar", exitUnjudged},
	"scenario lint judges": {"scenario lint --strict script.txtar", exitBroken},
	"scenario list":        {"scenario list", exitUnjudged},
	"scenario describe":    {"scenario describe script.txtar", exitUnjudged},
	"scenario commands":    {"scenario commands", exitUnjudged},
	"test":                 {"test --seeds 1 --output json -run Passes .", exitUnjudged},
	"up":                   {"up", exitUnjudged},
	"serve":                {"serve --socket s", exitUnjudged},
	"conformance":          {"conformance --focus S20/version-is-well-formed", exitUnjudged},
	"conformance json":     {"conformance --focus S20/version-is-well-formed -o json", exitUnjudged},
	"conformance list":     {"conformance --list", exitUnjudged},
	"conformance diff":     {"conformance diff report.json report.json", exitUnjudged},
	"conformance store":    {"conformance store --list", exitUnjudged},
	"bench startup":        {"bench startup --runs 1 --following 1", exitUnjudged},
	"bench all":            {"bench all --rounds 1 --only requests", exitUnjudged},
	"bench publish":        {"bench publish page --only most --most 1 --watchers 1 --duration 20ms", exitUnjudged},
	"bench search":         {"bench search --list", exitUnjudged},
	"bench watch":          {"bench watch --watchers 1 --duration 20ms --transport process", exitUnjudged},
	"etcd":                 {"etcd --listen unix://s", exitUnjudged},
	"assets":               {"assets assets", exitUnjudged},
	"release build":        {"release build v1.36.3", exitUnjudged},
	"release list":         {"release list", exitUnjudged},
	"release remove":       {"release remove 1.36", exitUnjudged},
	"points":               {"points", exitUnjudged},
	"trace diff":           {"trace diff fails.txtar script.txtar", exitBroken},
	"trace diff same":      {"trace diff script.txtar script.txtar", exitUnjudged},
	"version":              {"version", exitUnjudged},
	"help":                 {"help", exitUnjudged},
}

// silentCommands write nothing to standard output.
var silentCommands = []string{"conformance page", "scenario new", "trace report"}

// TestFullStdout runs one command of three, or with -all each, with a standard output on a full disk.
func TestFullStdout(t *testing.T) {
	for _, command := range leaves(newRoot()) {
		_, tried := unwritten[command]
		assert.NotEqual(t, tried, slices.Contains(silentCommands, command), command)
	}
	for i, name := range slices.Sorted(maps.Keys(unwritten)) {
		if !sample.Has(i, 3) {
			continue
		}
		test := unwritten[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range filesOfStates {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
			require.NoError(t, err)
			defer full.Close()
			program, err := os.Executable()
			require.NoError(t, err)
			var stderr strings.Builder
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Args = append([]string{"snowglobe"}, strings.Fields(test.args)...)
			cmd.Dir, cmd.Stdout, cmd.Stderr = dir, full, &stderr
			if strings.HasPrefix(name, "release ") {
				cmd.Env = append(cmd.Environ(), "XDG_CACHE_HOME="+dir)
				fakeRelease(t, dir)
			}
			err = cmd.Run()
			require.Error(t, err)
			assert.Equal(t, test.want, cmd.ProcessState.ExitCode(), "%v: %s", err, &stderr)
			assert.Contains(t, stderr.String(), "standard output: no space left on device")
			pages.Troubleshooting(t, "../..", stderr.String())
			assert.NotContains(t, stderr.String(), "--help")
		})
	}
}
