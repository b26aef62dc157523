package hostile

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// detectors are upstream's switches that are the user's, whatever they do: docs/limits.md
// names them. KUBE_CACHE_MUTATION_DETECTOR, which only looks, is in the hostile environment.
var detectors = []string{
	"KUBE_PATCH_CONVERSION_DETECTOR", "KUBE_WATCHLIST_INCONSISTENCY_DETECTOR",
	"KUBE_WATCHCACHE_CONSISTENCY_CHECKER", "KUBE_PANIC_WATCH_DECODE_ERROR",
}

// elsewhere are switches that a test of envtest sets: in this environment another would mean
// nothing beside them.
var elsewhere = []string{"DISABLE_HTTP2"}

// switches are how Kubernetes' libraries name variables for themselves.
var switches = regexp.MustCompile(`"((?:KUBE|HTTP2|DISABLE)_[A-Z0-9_]+)"`)

// TestSwitches reads what is linked for switches that upstream takes from the environment.
// Each is in the hostile environment, or there is a reason why not; a new one is in neither.
func TestSwitches(t *testing.T) {
	read := linkedSwitches(t)
	require.Contains(t, read, "KUBE_CLIENT_BACKOFF_BASE")
	var here []string
	for _, variable := range variables {
		name, _, _ := strings.Cut(variable, "=")
		here = append(here, name)
	}
	for name, files := range read {
		known := slices.Contains(detectors, name) || slices.Contains(elsewhere, name) || slices.ContainsFunc(here, func(variable string) bool {
			return variable == name || strings.HasSuffix(name, "_") && strings.HasPrefix(variable, name)
		})
		assert.True(t, known, "%s, which %v read, is new: what does it do to a control plane? See envtest/process/globals.go", name, files)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "limits.md"))
	require.NoError(t, err)
	for _, name := range slices.Concat(detectors, elsewhere) {
		assert.Contains(t, read, name, "no library reads it any more")
		assert.Contains(t, string(page), "`"+name+"`", "docs/limits.md says what it does")
	}
}

// linkedSwitches returns the switches in the source of all that the program links, with the
// packages that read them.
func linkedSwitches(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,Standard", "snowglobe.test/cmd/snowglobe")
	out, err := list.Output()
	require.NoError(t, err)
	read := map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var linked struct {
			ImportPath, Dir string
			GoFiles         []string
			Standard        bool
		}
		err := decoder.Decode(&linked)
		if errors.Is(err, io.EOF) {
			return read
		}
		require.NoError(t, err)
		if linked.Standard || strings.HasPrefix(linked.ImportPath, "snowglobe.test/") {
			continue
		}
		for _, file := range linked.GoFiles {
			source, err := os.ReadFile(filepath.Join(linked.Dir, file))
			require.NoError(t, err)
			if !strings.Contains(string(source), "Getenv") && !strings.Contains(string(source), "LookupEnv") {
				continue
			}
			for _, found := range switches.FindAllStringSubmatch(string(source), -1) {
				read[found[1]] = append(read[found[1]], linked.ImportPath)
			}
		}
	}
}

// TestAgainSeesNothing has a test binary in which the named test does not exist.
func TestAgainSeesNothing(t *testing.T) {
	const renamed = "SNOWGLOBE_TEST_RENAMED"
	if os.Getenv(renamed) != "" {
		Again(t, "TestThatWasRenamed")
		return
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAgainSeesNothing$")
	again.Env = append(os.Environ(), renamed+"=yes")
	out, err := again.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "TestThatWasRenamed did not run")
}
