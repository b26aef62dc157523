package lint

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// snippet is a block of Go in a document.
var snippet = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// snippets is the rule that the Go code in the README is tested: each block must be
// part of a file in an example.
func snippets(t *tree) []string {
	var complaints []string
	for _, f := range t.files {
		if f.path != "README.md" {
			continue
		}
		for _, at := range snippet.FindAllSubmatchIndex(f.text, -1) {
			if block := f.text[at[2]:at[3]]; !t.shown(block) {
				complaints = append(complaints, complaint(f, line(f.text, at[0]), "no file in examples/ contains this code, so nothing tests it"))
			}
		}
	}
	return complaints
}

// shown reports whether an example contains the block.
func (t *tree) shown(block []byte) bool {
	for _, f := range t.files {
		if strings.HasPrefix(f.path, "examples/") && f.isGo() && bytes.Contains(f.text, block) {
			return true
		}
	}
	return false
}

func TestSnippets(t *testing.T) { obeys(t, snippets(repository(t))) }

func TestSnippetsComplains(t *testing.T) {
	const example = "package a\n\nfunc A() {\n\tB()\n}\n"
	try(t, snippets, []fixture{
		{"good", map[string]string{"README.md": "x\n```go\nfunc A() {\n\tB()\n}\n```\n```sh\ngo run .\n```\n", "examples/a/a.go": example}, nil},
		{"bad", map[string]string{"README.md": "x\n\n```go\nfunc A() {\n\tC()\n}\n```\n", "examples/a/a.go": example}, []string{"README.md:3:"}},
		{"elsewhere", map[string]string{"README.md": "```go\nfunc A() {\n\tB()\n}\n```\n", "a/a.go": example}, []string{"README.md:1:"}},
	})
}
