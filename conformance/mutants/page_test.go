package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance/mutants/mutation"
	"snowglobe.test/conformance/mutants/trial"
	"snowglobe.test/conformance/mutants/workshop"
)

var update = flag.Bool("update", false, "write the page")

// kept is what the repository keeps, and the folder of the module.
func kept(t *testing.T) (*trial.Kept, string) {
	t.Helper()
	root, err := workshop.Root(t.Context())
	require.NoError(t, err)
	kept, err := readKept(root)
	require.NoError(t, err)
	return kept, root
}

func TestPageIsFresh(t *testing.T) {
	kept, root := kept(t)
	file := pagePath(root)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(page(kept)), 0o644))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(text), page(kept), "run: go -C conformance/mutants test . -run TestPageIsFresh -update")
}

// TestVerdictsAreFresh looks for the place of each mutant of which a verdict is kept, and for
// the text that mutants by hand replace, in the linked release of upstream.
func TestVerdictsAreFresh(t *testing.T) {
	kept, _ := kept(t)
	hand, err := mutation.WrittenByHand()
	require.NoError(t, err)
	systems, err := mutation.OfChain()
	require.NoError(t, err)
	folders, release := upstream(t)
	assert.Equal(t, release, kept.Release, "upstream has changed: run all mutants again")
	have := map[string]mutation.Mutant{}
	wanted := map[string]bool{}
	for _, v := range kept.Verdicts {
		wanted[fileOf(v.ID)] = true
	}
	for _, h := range hand {
		wanted[h.File] = true
	}
	for file := range wanted {
		module, rest, _ := strings.Cut(file, "/")
		text, err := os.ReadFile(filepath.Join(folders["k8s.io/"+module], filepath.FromSlash(rest)))
		require.NoError(t, err)
		f, err := mutation.Parse(file, text, systems, hand)
		require.NoError(t, err)
		for _, m := range f.Mutants {
			have[m.ID] = m
		}
	}
	for _, v := range kept.Verdicts {
		m := have[v.ID]
		assert.Equal(t, []string{m.System, m.Change}, []string{v.System, v.Change}, "%s is another mutant now, or none; run it again, or take it out", v.ID)
	}
}

func fileOf(id string) string {
	file, _, _ := strings.Cut(id, ":")
	return file
}

// upstream is the folders of the modules that get mutants, and the release of Kubernetes.
func upstream(t *testing.T) (folders map[string]string, release string) {
	t.Helper()
	args := []string{"list", "-m", "-f", "{{.Path}} {{.Version}} {{.Dir}}"}
	out, err := exec.CommandContext(t.Context(), "go", append(args, workshop.Modules...)...).Output()
	require.NoError(t, err)
	folders = map[string]string{}
	for line := range strings.Lines(string(out)) {
		var path, version, dir string
		_, err := fmt.Sscan(line, &path, &version, &dir)
		require.NoError(t, err, line)
		folders[path] = dir
		if path == "k8s.io/kubernetes" {
			release = version
		}
	}
	return folders, release
}

// TestProgramParses: the program's own source is no Go file of this repository, so that no
// compiler sees it before all of upstream is built.
func TestProgramParses(t *testing.T) {
	for _, name := range []string{"main.go.txt", "mutant.go.txt"} {
		text, err := os.ReadFile(filepath.Join("workshop", "source", name))
		require.NoError(t, err)
		_, err = parser.ParseFile(token.NewFileSet(), name, text, 0)
		assert.NoError(t, err)
	}
}

func TestCommandRefuses(t *testing.T) {
	for args, message := range map[string]string{
		"run --output yaml":        `output "yaml" is not known`,
		"list --output yaml":       `output "yaml" is not known`,
		"run --sample 1 --each 1":  "none of the others can be",
		"check --sample 1 --wrong": "unknown flag: --wrong",
		"build here":               "unknown command",
	} {
		root := command()
		root.SetArgs(strings.Fields(args))
		assert.ErrorContains(t, root.ExecuteContext(context.Background()), message, args)
	}
}

func TestKilled(t *testing.T) {
	mutants := []mutation.Mutant{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	kept := &trial.Kept{Verdicts: []trial.Verdict{
		{ID: "a", Result: trial.Survived},
		{ID: "b", Result: trial.Killed, By: "S1/x"},
		{ID: "c", Result: trial.Killed, By: trial.AtStart},
	}}
	jobs, err := killed(kept, mutants)
	require.NoError(t, err)
	assert.Equal(t, []trial.Job{{Mutant: mutants[1], Cases: []string{"S1/x"}}}, jobs)
	_, err = killed(kept, mutants[:1])
	assert.ErrorContains(t, err, "b of verdicts.json is no mutant any more")
}

// TestMissed: a mutant that changes nothing survives, which check does not forgive.
func TestMissed(t *testing.T) {
	nothing := func(_ context.Context, _ []int, order trial.Order, tell func(trial.Line) bool) error {
		for _, id := range append([]string{""}, order.Cases...) {
			tell(trial.Line{Case: id, State: trial.Passed})
		}
		return nil
	}
	var progress strings.Builder
	opts := trials{parallel: 1, patience: 1 << 40, limit: 1 << 40}
	verdicts, err := opts.all(t.Context(), nothing, []trial.Job{{Mutant: mutation.Mutant{ID: "a.go:f:negate:1"}, Cases: []string{"S1/x"}}}, &progress)
	require.NoError(t, err)
	assert.ErrorIs(t, missed(verdicts), errMissed)
	assert.Contains(t, progress.String(), "survived 1 cases")
	assert.NoError(t, missed([]trial.Verdict{{Result: trial.Killed}}))
}

// TestSure forgets what a case said that fails without a mutant too.
func TestSure(t *testing.T) {
	broken := func(_ context.Context, _ []int, order trial.Order, tell func(trial.Line) bool) error {
		state := map[string]string{"S1/broken": trial.Failed}
		tell(trial.Line{})
		tell(trial.Line{Case: order.Cases[0], State: cmp.Or(state[order.Cases[0]], trial.Passed)})
		return nil
	}
	kept := []trial.Verdict{
		{ID: "a", Result: trial.Killed, By: "S1/x"},
		{ID: "b", Result: trial.Survived},
		{ID: "c", Result: trial.Killed, By: trial.AtStart},
	}
	var progress strings.Builder
	opts := trials{patience: 1 << 40, limit: 1 << 40}
	got, err := opts.sure(t.Context(), broken, append(kept, trial.Verdict{ID: "d", Result: trial.Killed, By: "S1/broken"}), &progress)
	require.NoError(t, err)
	assert.Equal(t, kept, got)
	assert.Contains(t, progress.String(), "nothing is known about d")
}
