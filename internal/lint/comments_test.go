package lint

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// comments is the rule that every package has exactly one package comment. That of a
// library begins with "Package name", that of a program with "Command" or its name.
func comments(t *tree) []string {
	type pkg struct{ first, documented file }
	pkgs := map[string]*pkg{}
	var complaints []string
	for _, f := range t.files {
		if !f.isGo() || f.isTest() || slices.Contains(strings.Split(f.path, "/"), "testdata") {
			continue
		}
		p := pkgs[f.dir()]
		if p == nil {
			p = &pkg{first: f}
			pkgs[f.dir()] = p
		}
		switch {
		case f.doc == "":
		case p.documented.path != "":
			complaints = append(complaints, complaint(f, 1, "package %s already has a comment in %s: keep one", f.pkg, path.Base(p.documented.path)))
		default:
			p.documented = f
			if want := openings(f); !slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(f.doc, w+" ") }) {
				complaints = append(complaints, complaint(f, 1, "the package comment must begin with %q", want))
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(pkgs)) {
		if p := pkgs[dir]; p.documented.path == "" {
			complaints = append(complaints, complaint(p.first, 1, "package %s has no comment: say what it owns and what it never does", p.first.pkg))
		}
	}
	return complaints
}

// openings are what a file's package comment may begin with.
func openings(f file) []string {
	if f.pkg != "main" {
		return []string{"Package " + f.pkg}
	}
	name := path.Base(f.dir())
	return []string{"Command", strings.ToUpper(name[:1]) + name[1:]}
}

func TestComments(t *testing.T) { obeys(t, comments(repository(t))) }

func TestCommentsComplains(t *testing.T) {
	try(t, comments, []fixture{
		{"good", map[string]string{
			"a/a.go": "// Package a owns a.\npackage a", "a/b.go": "//go:build linux\n\npackage a", "a/a_test.go": "package a_test",
			"cmd/x/main.go": "// Command x runs.\npackage main", "cmd/y/main.go": "/*\nY runs.\n*/\npackage main",
			"a/testdata/b/b.go": "package b", "testonly/a_test.go": "package testonly",
		}, nil},
		{"none", map[string]string{"a/a.go": "package a", "a/b.go": "// not of the package\n\npackage a"}, []string{"a/a.go:1: package a has no comment"}},
		{"twice", map[string]string{"a/a.go": "// Package a is.\npackage a", "a/b.go": "// Package a is.\npackage a"}, []string{"a/b.go:1: package a already has a comment in a.go"}},
		{"odd", map[string]string{"a/a.go": "// This is a.\npackage a", "cmd/x/x.go": "// Package main runs.\npackage main"},
			[]string{`must begin with ["Package a"]`, `must begin with ["Command" "X"]`}},
	})
}
