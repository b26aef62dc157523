package lint

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// topFolders and topFiles are what may lie at the top of the repository.
var (
	topFolders = []string{".ci", "bench", "cmd", "conformance", "docs", "envtest", "examples", "fakes", "internal", "scenarios"}
	topFiles   = []string{
		"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "go.mod", "go.sum",
		".editorconfig", ".gitattributes", ".gitignore", ".golangci.yml", ".goreleaser.yaml",
		"staticcheck.conf",
	}
)

// layout is the rule that nothing else lies at the top, and that every example is a
// module of its own, as its readers' code will be.
func layout(t *tree) []string {
	var complaints []string
	reported := map[string]bool{}
	for _, f := range t.files {
		top, _, inFolder := strings.Cut(f.path, "/")
		switch {
		case inFolder && !slices.Contains(topFolders, top):
			if !reported[top] {
				reported[top] = true
				complaints = append(complaints, complaint(f, 1, "the folder %s does not belong at the top: move it into one of %q", top, topFolders))
			}
		case !inFolder && !slices.Contains(topFiles, top):
			complaints = append(complaints, complaint(f, 1, "this file does not belong at the top: move it, or add it to .gitignore if it was built"))
		case top == "examples" && f.isGo() && !t.nested(f):
			complaints = append(complaints, complaint(f, 1, "an example must be a module of its own: add %s", path.Join(f.dir(), "go.mod")))
		}
	}
	return complaints
}

func TestLayout(t *testing.T) { obeys(t, layout(repository(t))) }

func TestLayoutComplains(t *testing.T) {
	try(t, layout, []fixture{
		{"good", map[string]string{
			".gitignore": "/snowglobe\n", "snowglobe": "binary", "go.mod": "module x", "README.md": "",
			"envtest/a.go": "package envtest", ".ci/run": "", "docs/HACKING.md": "",
			"examples/consumer/go.mod": "module x", "examples/consumer/sub/a.go": "package sub", "examples/README.md": "",
		}, nil},
		{"bad", map[string]string{
			"main.go": "package main", "NOTES.md": "", "pkg/a.go": "package pkg", "pkg/b.go": "package pkg", ".github/x.yml": "",
			"examples/loose/a.go": "package loose",
		}, []string{"main.go:1:", "NOTES.md:1:", "the folder pkg ", "the folder .github ", "add examples/loose/go.mod"}},
	})
}
