package mutation_test

import (
	"flag"
	"fmt"
	"go/importer"
	"go/types"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance/mutants/mutation"
)

var update = flag.Bool("update", false, "write the golden files")

const hand = `
ready-at-once S15 small/small.go server.check
-	switch {
-	case name == "" || other == "":
+	switch {
+	case name == "":
`

// small is the file of testdata with its mutants.
func small(t *testing.T) *mutation.File {
	t.Helper()
	src, err := os.ReadFile("testdata/small.go.txt")
	require.NoError(t, err)
	byHand, err := mutation.ParseHandwritten(hand)
	require.NoError(t, err)
	f, err := mutation.Parse("small/small.go", src, mutation.Systems{"small": "S4"}, byHand)
	require.NoError(t, err)
	return f
}

// TestParse compares the mutants of a file, and the file with all of them, with what they were.
func TestParse(t *testing.T) {
	f := small(t)
	var got strings.Builder
	all := mutation.All([]*mutation.File{f})
	mutation.Number(all, nil)
	number := map[string]int{}
	for _, m := range all {
		number[m.ID] = m.Switch
		fmt.Fprintf(&got, "%d %s %s line %d: %s\n", m.Switch, m.System, m.ID, m.Line, m.Change)
	}
	fmt.Fprintf(&got, "\n%s", f.Text(func(id string) int { return number[id] }))
	golden(t, "testdata/small.golden", got.String())
}

// TestCheck drops what does not compile, and nothing else: swapped arguments of two types.
func TestCheck(t *testing.T) {
	const src = "package small\n\nfunc f(n int, name string) (int, string) { return f(n, name) }\n\nfunc g(a, b int) int { return g(a, b) }\n"
	f, err := mutation.Parse("small/f.go", []byte(src), mutation.Systems{"small": "S4"}, nil)
	require.NoError(t, err)
	require.Len(t, f.Mutants, 2)
	p := mutation.Package{Path: "small", Files: map[string]*mutation.File{"f.go": f}}
	require.NoError(t, p.Check(switches{importer.Default()}, ""))
	require.Len(t, f.Mutants, 1)
	assert.Equal(t, "small/f.go:g:swap-arguments:1", f.Mutants[0].ID)
}

// TestCheckKeepsAll compiles the file with all of its mutants.
func TestCheckKeepsAll(t *testing.T) {
	f := small(t)
	before := len(f.Mutants)
	p := mutation.Package{Path: "small", Files: map[string]*mutation.File{"small.go": f}}
	require.NoError(t, p.Check(switches{importer.Default()}, ""))
	assert.Len(t, f.Mutants, before)
}

// switches knows the package of the switches, and what another importer knows.
type switches struct{ types.Importer }

// Import implements types.Importer.
func (s switches) Import(path string) (*types.Package, error) {
	if path == mutation.SwitchPackage {
		return mutation.Switch(), nil
	}
	return s.Importer.Import(path)
}

// TestIDsAreStable adds a function and a mutant by hand: no other mutant gets another ID.
func TestIDsAreStable(t *testing.T) {
	src, err := os.ReadFile("testdata/small.go.txt")
	require.NoError(t, err)
	parse := func(src string) (ids []string) {
		f, err := mutation.Parse("small/small.go", []byte(src), mutation.Systems{"small": "S4"}, nil)
		require.NoError(t, err)
		for _, m := range f.Mutants {
			ids = append(ids, m.ID)
		}
		return ids
	}
	before := parse(string(src))
	added := "func first(a bool) bool { if a { return true }; return false }\n\ntype server struct"
	after := parse(strings.Replace(string(src), "type server struct", added, 1))
	assert.Subset(t, after, before)
	assert.Greater(t, len(after), len(before))
}

// TestNumber: mutants keep their switches when others come and go.
func TestNumber(t *testing.T) {
	before := []mutation.Mutant{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	mutation.Number(before, nil)
	assert.Equal(t, []mutation.Mutant{{ID: "a", Switch: 1}, {ID: "b", Switch: 2}, {ID: "c", Switch: 3}}, before)
	after := []mutation.Mutant{{ID: "a"}, {ID: "aa"}, {ID: "c"}, {ID: "d"}}
	mutation.Number(after, before)
	assert.Equal(t, []mutation.Mutant{{ID: "a", Switch: 1}, {ID: "aa", Switch: 2}, {ID: "c", Switch: 3}, {ID: "d", Switch: 4}}, after)
}

func TestSystems(t *testing.T) {
	systems, err := mutation.ParseSystems("S4 a/b # folder\n   a/c/d.go:T.f\n- a/b/metrics\n")
	require.NoError(t, err)
	for id, system := range map[string]string{
		"a/b/x.go:f:negate:1":       "S4",
		"a/b/c/x.go:f:negate:1":     "S4",
		"a/bc/x.go:f:negate:1":      "",
		"a/c/d.go:T.f:skip:2":       "S4",
		"a/c/d.go:T.g:skip:2":       "",
		"a/b/metrics/x.go:f:skip:2": "",
	} {
		assert.Equal(t, system, systems.Of(id), id)
	}
	_, err = mutation.ParseSystems("S4 a\nS5 a\n")
	assert.ErrorContains(t, err, "a is part of S4 and of S5")
}

func TestHandwrittenRefuses(t *testing.T) {
	for text, message := range map[string]string{
		"x S4 small/small.go server.check\n-\tno such line\n+\n":     "has the old text 0 times",
		"x S4 small/small.go server.check\n-\t\treturn\n":            "has the old text 2 times",
		"x S4 small/small.go server.gone\n-\t\treturn nil\n":         "has no function server.gone",
		"x S4 small/small.go\n":                                      "line 1: want a name",
		"- old\n":                                                    "line 1: want a name",
		"x S4 small/small.go server.check\n+\t\treturn errors.New\n": "no line behind -",
	} {
		byHand, err := mutation.ParseHandwritten(text)
		if err == nil {
			var src []byte
			src, err = os.ReadFile("testdata/small.go.txt")
			require.NoError(t, err)
			_, err = mutation.Parse("small/small.go", src, mutation.Systems{}, byHand)
		}
		assert.ErrorContains(t, err, message, text)
	}
}

// golden compares a text with a file, or writes it there.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "run: go -C conformance/mutants test ./mutation -update")
}
