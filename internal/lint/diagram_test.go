package lint

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// drawn is a line of the diagram: a package, and the packages it imports.
var drawn = regexp.MustCompile(`(?m)^([a-z][a-z0-9/]*) +─►(.*)$`)

// diagram is the rule that docs/ARCHITECTURE.md draws every package of this
// module and every arrow between two of them, and nothing else.
func diagram(t *tree) []string {
	const page = "docs/ARCHITECTURE.md"
	shown, real := map[string][]string{}, map[string][]string{}
	for _, f := range t.files {
		if f.path == page {
			for _, match := range drawn.FindAllSubmatch(f.text, -1) {
				shown[string(match[1])] = strings.Fields(strings.ReplaceAll(string(match[2]), ",", " "))
			}
		}
		if !f.isGo() || f.isTest() || t.nested(f) || slices.Contains(strings.Split(f.path, "/"), "testdata") {
			continue
		}
		real[f.dir()] = append(real[f.dir()], nil...)
		for _, i := range f.imports {
			if to, ok := strings.CutPrefix(i.path, modulePath+"/"); ok && !slices.Contains(real[f.dir()], to) {
				real[f.dir()] = append(real[f.dir()], to)
			}
		}
	}
	var complaints []string
	for _, pkg := range slices.Sorted(maps.Keys(real)) {
		want := slices.Sorted(slices.Values(real[pkg]))
		have, ok := shown[pkg]
		if !ok || !slices.Equal(slices.Sorted(slices.Values(have)), want) {
			complaints = append(complaints, page+" must draw: "+pkg+" ─► "+strings.Join(want, ", "))
		}
		delete(shown, pkg)
	}
	for _, pkg := range slices.Sorted(maps.Keys(shown)) {
		complaints = append(complaints, page+" draws the package "+pkg+", which does not exist")
	}
	return complaints
}

func TestDiagram(t *testing.T) { obeys(t, diagram(repository(t))) }

func TestDiagramComplains(t *testing.T) {
	const code = "package x\nimport _ \"" + modulePath + "/b\"\n"
	page := func(lines ...string) map[string]string {
		return map[string]string{
			"docs/ARCHITECTURE.md": "```\n" + strings.Join(lines, "\n") + "\n```\n",
			"a/a.go":               code, "a/a_test.go": "package a\nimport _ \"" + modulePath + "/c\"\n",
			"b/b.go": "package b\n",
		}
	}
	try(t, diagram, []fixture{
		{"good", page("a   ─► b", "b   ─►"), nil},
		{"missing package", page("a ─► b"), []string{"must draw: b ─►"}},
		{"missing arrow", page("a ─►", "b ─►"), []string{"must draw: a ─► b"}},
		{"arrow too many", page("a ─► b", "b ─► a"), []string{"must draw: b ─►"}},
		{"package too many", page("a ─► b", "b ─►", "c ─► a"), []string{"draws the package c"}},
	})
}
