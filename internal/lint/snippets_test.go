package lint

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// snippet is a block of Go in a document.
var snippet = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// snippets is the rule that the Go code in documents is compiled: the lines of each block
// must be lines of one Go file, in their order and without others between them, except
// where the block says "...". Those of the README must be in an example, because people
// begin with them.
func snippets(t *tree) []string {
	var complaints []string
	for _, f := range t.files {
		if !strings.HasSuffix(f.path, ".md") {
			continue
		}
		within, where := "", "the repository"
		if f.path == "README.md" {
			within, where = "examples/", "examples/"
		}
		for _, at := range snippet.FindAllSubmatchIndex(f.text, -1) {
			if !t.shown(snippetParts(f.text[at[2]:at[3]]), within) {
				complaints = append(complaints, complaint(f, line(f.text, at[0]), "no Go file in %s contains this code, so nothing compiles it", where))
			}
		}
	}
	return complaints
}

// snippetParts are the stretches of a block between lines that say "...", each as lines
// without their indentation.
func snippetParts(block []byte) [][]string {
	parts := [][]string{nil}
	for _, l := range trimmedLines(block) {
		if last := len(parts) - 1; l == "..." {
			parts = append(parts, nil)
		} else {
			parts[last] = append(parts[last], l)
		}
	}
	return parts
}

func trimmedLines(text []byte) []string {
	var lines []string
	for l := range strings.Lines(string(text)) {
		lines = append(lines, strings.TrimSpace(l))
	}
	return lines
}

// shown reports whether a Go file in a folder contains the parts, one after the other.
func (t *tree) shown(parts [][]string, folder string) bool {
	for _, f := range t.files {
		if strings.HasPrefix(f.path, folder) && f.isGo() && inOrder(trimmedLines(f.text), parts) {
			return true
		}
	}
	return false
}

func inOrder(lines []string, parts [][]string) bool {
	for _, part := range parts {
		at := 0
		for ; at+len(part) <= len(lines) && !slices.Equal(lines[at:at+len(part)], part); at++ {
		}
		if at+len(part) > len(lines) {
			return false
		}
		lines = lines[at+len(part):]
	}
	return true
}

func TestSnippets(t *testing.T) { obeys(t, snippets(repository(t))) }

func TestSnippetsComplains(t *testing.T) {
	const example = "package a\n\nfunc A() {\n\tB()\n\tC()\n\tD()\n}\n"
	block := func(lines string) string { return "x\n```go\n" + lines + "```\n```sh\ngo run .\n```\n" }
	try(t, snippets, []fixture{
		{"good", map[string]string{"README.md": block("func A() {\n\tB()\n"), "examples/a/a.go": example}, nil},
		{"another line", map[string]string{"README.md": block("func A() {\n\tE()\n"), "examples/a/a.go": example}, []string{"README.md:2:"}},
		{"a line left out", map[string]string{"README.md": block("B()\nD()\n"), "examples/a/a.go": example}, []string{"README.md:2:"}},
		{"and said so", map[string]string{"README.md": block("B()\n...\nD()\n"), "examples/a/a.go": example}, nil},
		{"the other way round", map[string]string{"README.md": block("D()\n...\nB()\n"), "examples/a/a.go": example}, []string{"README.md:2:"}},
		{"not an example", map[string]string{"README.md": block("B()\n"), "a/a.go": example}, []string{"README.md:2:"}},
		{"a page", map[string]string{"docs/a.md": block("B()\n"), "a/a.go": example}, nil},
		{"a bad page", map[string]string{"docs/a.md": block("E()\n"), "a/a.go": example}, []string{"docs/a.md:2:"}},
	})
}
