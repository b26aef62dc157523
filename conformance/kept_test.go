package conformance_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
)

var keepReports = flag.String("keep", "", "keep these reports for docs/CONFORMANCE.md: [TARGET=]FILE, separated by commas")

// keptFolder has a kept result for each target.
const keptFolder = "results"

// kept is what docs/CONFORMANCE.md has to know of a report.
type kept struct {
	Target      string  `json:"target"`
	Release     string  `json:"release"`
	VirtualTime bool    `json:"virtualTime,omitempty"`
	Date        string  `json:"date"`
	Seconds     float64 `json:"seconds"`
	// Explained says why a target differs, by case. It is written by hand, and stays when a
	// newer result is kept.
	Explained map[string]string `json:"explained,omitempty"`
	Failed    map[string]string `json:"failed,omitempty"` // messages by case
	// NotApplicable and NotRun are cases by reason.
	NotApplicable map[string][]string `json:"notApplicable,omitempty"`
	NotRun        map[string][]string `json:"notRun,omitempty"`
	Passed        []string            `json:"passed"`
}

func newKept(r engine.Report) kept {
	k := kept{
		Target: r.Target, Release: r.Release, VirtualTime: r.VirtualTime, Date: r.Date.Format(time.DateOnly), Seconds: r.Took.Round(time.Second).Seconds(),
		Failed: map[string]string{}, NotApplicable: map[string][]string{}, NotRun: map[string][]string{},
	}
	for _, result := range r.Results {
		id := result.Case.ID
		switch result.State {
		case engine.Passed:
			k.Passed = append(k.Passed, id)
		case engine.Failed:
			k.Failed[id] = result.Message
		case engine.NotApplicable:
			k.NotApplicable[result.Message] = append(k.NotApplicable[result.Message], id)
		case engine.NotRun:
			k.NotRun[result.Message] = append(k.NotRun[result.Message], id)
		}
	}
	slices.Sort(k.Passed)
	return k
}

// name is that of a target with its clock.
func (k kept) name() string {
	if k.VirtualTime {
		return k.Target + ", virtual time"
	}
	return k.Target
}

// took says how long the run was, on the clock of the target.
func (k kept) took() string {
	took := (time.Duration(k.Seconds) * time.Second).String()
	if k.VirtualTime {
		return took + " of virtual time"
	}
	return took
}

var notInFileNames = regexp.MustCompile(`[^a-z0-9]+`)

func (k kept) file() string {
	return filepath.Join(keptFolder, strings.Trim(notInFileNames.ReplaceAllString(strings.ToLower(k.name()), "-"), "-")+".json")
}

// states are how the cases ended, by ID.
func (k kept) states() map[string]engine.State {
	states := map[string]engine.State{}
	for _, id := range k.Passed {
		states[id] = engine.Passed
	}
	for id := range k.Failed {
		states[id] = engine.Failed
	}
	for state, byReason := range map[engine.State]map[string][]string{engine.NotApplicable: k.NotApplicable, engine.NotRun: k.NotRun} {
		for _, ids := range byReason {
			for _, id := range ids {
				states[id] = state
			}
		}
	}
	return states
}

// keepResults writes the reports of -keep in the place of older ones of the same targets.
func keepResults(t *testing.T) {
	t.Helper()
	for _, path := range strings.FieldsFunc(*keepReports, func(r rune) bool { return r == ',' }) {
		target, file, named := strings.Cut(path, "=")
		if !named {
			file = path
		}
		report, err := reports.Read(file)
		require.NoError(t, err)
		k := newKept(report)
		if named { // that of a kubeconfig is a path of somebody's machine
			k.Target = target
		}
		if before, err := os.ReadFile(k.file()); err == nil {
			var older kept
			require.NoError(t, json.Unmarshal(before, &older))
			k.Explained = older.Explained
		}
		text, err := json.MarshalIndent(k, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(k.file(), append(text, '\n'), 0o644))
	}
}

// readKept returns the kept results: our own targets first, which have no address.
func readKept(t *testing.T) (all []kept) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(keptFolder, "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var k kept
		require.NoError(t, json.Unmarshal(text, &k), file)
		assert.Equal(t, filepath.ToSlash(k.file()), filepath.ToSlash(file), "the name of the file")
		all = append(all, k)
	}
	slices.SortStableFunc(all, func(a, b kept) int {
		return strings.Compare(place(a)+a.name(), place(b)+b.name())
	})
	return all
}

// place puts what is in memory first.
func place(k kept) string {
	if strings.HasPrefix(k.Target, conformance.StoreMemory) {
		return "0"
	}
	return "1"
}
