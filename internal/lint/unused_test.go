package lint

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unused is the rule that every arrow of the policy is one that a package uses:
// an arrow that stays behind is a door left open.
func (a *arrows) unused(t *tree) []string {
	var complaints []string
	for _, kind := range []struct {
		rules map[string][]string
		mark  string
		uses  func(key string, f file) bool
	}{
		{a.may, "->", func(key string, f file) bool { return rules(a.may, key, f) && !f.isTest() }},
		{a.tests, "(test) ->", func(key string, f file) bool { return rules(a.tests, key, f) && f.isTest() }},
	} {
		for _, key := range slices.Sorted(maps.Keys(kind.rules)) {
			for _, to := range kind.rules[key] {
				if !t.imported(to, func(f file) bool { return kind.uses(key, f) }) {
					complaints = append(complaints, "the policy has "+key+" "+kind.mark+" "+to+", which no package uses: take it out")
				}
			}
		}
	}
	for _, outside := range slices.Sorted(maps.Keys(a.only)) {
		for _, importer := range a.only[outside] {
			pattern := outside
			if first, _, _ := strings.Cut(outside, "/"); !strings.Contains(first, ".") {
				pattern = modulePath + "/" + outside
			}
			if !t.importedFrom(pattern, func(f file) bool { return covers(importer, f.dir()) }) {
				complaints = append(complaints, "the policy lets "+importer+" import "+outside+", which it does not: take it out")
			}
		}
	}
	return complaints
}

// rules reports whether it is the line of key that rules a file's package.
func rules(lines map[string][]string, key string, f file) bool {
	found, ok := ruling(lines, f.dir())
	return ok && found == key
}

// imported reports whether one of the files that match imports a package of
// this module that the pattern covers.
func (t *tree) imported(pattern string, match func(file) bool) bool {
	return t.importedFrom(modulePath+"/"+pattern, match)
}

func (t *tree) importedFrom(pattern string, match func(file) bool) bool {
	return slices.ContainsFunc(t.files, func(f file) bool {
		return f.isGo() && !t.nested(f) && match(f) && slices.ContainsFunc(f.imports, func(i imported) bool {
			return covers(pattern, i.path) && !strings.HasSuffix(i.path, "/"+f.dir())
		})
	})
}

func TestNoUnusedArrows(t *testing.T) { obeys(t, readPolicy(t).unused(repository(t))) }

func TestUnusedComplains(t *testing.T) {
	a, err := parsePolicy("a ->\nb -> a\nb (test) -> c\nc -> a b\nexample.test/x only c d")
	require.NoError(t, err)
	source := func(pkg string, imports ...string) string {
		text := "package " + pkg + "\n"
		for _, i := range imports {
			text += "import _ \"" + i + "\"\n"
		}
		return text
	}
	const m = modulePath + "/"
	try(t, a.unused, []fixture{{"arrows", map[string]string{
		"b/b.go":      source("b", m+"a"),
		"b/b_test.go": source("b", m+"a"),
		"c/c.go":      source("c", m+"b", "example.test/x"),
		"c/c_test.go": source("c", m+"a"),
	}, []string{"b (test) -> c", "c -> a", "lets d import example.test/x"}}})
}
