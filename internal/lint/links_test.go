package lint

import (
	"bytes"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	quoted  = regexp.MustCompile("`([\\w.-]+(?:/[\\w.-]*)*)`")
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	scheme  = regexp.MustCompile(`^[a-z]+:`)
)

// links is the rule that documents point only at what exists: the target of every
// relative link, including its heading, and every file or folder of the repository
// named in `backquotes`. The changelog may name what is gone.
func links(t *tree) []string {
	exists, headings := map[string]bool{".": true}, map[string][]string{}
	for _, f := range t.files {
		exists[path.Base(f.path)] = true
		for p := f.path; p != "."; p = path.Dir(p) {
			exists[p] = true
		}
		if path.Ext(f.path) == ".md" {
			for _, h := range heading.FindAllSubmatch(blankFences(f.text), -1) {
				headings[f.path] = append(headings[f.path], anchor(string(h[1])))
			}
		}
	}
	var complaints []string
	for _, f := range t.files {
		if path.Ext(f.path) != ".md" {
			continue
		}
		text := blankFences(f.text)
		for _, at := range link.FindAllSubmatchIndex(text, -1) {
			target := string(text[at[2]:at[3]])
			if scheme.MatchString(target) {
				continue
			}
			name, section, _ := strings.Cut(target, "#")
			file := f.path
			if name != "" {
				file = path.Join(f.dir(), name)
			}
			if !exists[file] {
				complaints = append(complaints, complaint(f, line(text, at[0]), "links to %s, which does not exist", target))
			} else if section != "" && !slices.Contains(headings[file], section) {
				complaints = append(complaints, complaint(f, line(text, at[0]), "links to %s, but the headings of that file are %q", target, headings[file]))
			}
		}
		if path.Base(f.path) == "CHANGELOG.md" {
			continue
		}
		for _, at := range quoted.FindAllSubmatchIndex(text, -1) {
			if name := string(text[at[2]:at[3]]); isOurs(name) && !exists[strings.TrimSuffix(name, "/")] {
				complaints = append(complaints, complaint(f, line(text, at[0]), "names %s, which does not exist", name))
			}
		}
	}
	return complaints
}

// isOurs reports whether a quoted name must exist in the repository: a path from the
// top, or the name of a Go file anywhere.
func isOurs(name string) bool {
	top, _, deep := strings.Cut(name, "/")
	return deep && slices.Contains(topFolders, top) || !deep && path.Ext(name) == ".go"
}

// blankFences blanks out code blocks, and keeps the line numbers.
func blankFences(text []byte) []byte {
	return fence.ReplaceAllFunc(text, func(block []byte) []byte {
		return bytes.Repeat([]byte("\n"), bytes.Count(block, []byte("\n")))
	})
}

// anchor is the name under which a heading can be linked to.
func anchor(heading string) string {
	keep := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		case r == ' ':
			return '-'
		}
		return -1
	}
	return strings.Map(keep, strings.ToLower(strings.TrimSpace(heading)))
}

func TestLinks(t *testing.T) { obeys(t, links(repository(t))) }

func TestLinksComplains(t *testing.T) {
	here := map[string]string{
		"docs/A.md":        "# The `first` one!\n\n## Second\n",
		"envtest/start.go": "package envtest",
	}
	with := func(name, text string) map[string]string {
		m := maps.Clone(here)
		m[name] = text
		return m
	}
	try(t, links, []fixture{
		{"good", with("README.md", "[a](docs/A.md) [b](docs/A.md#the-first-one) [c](https://example.test/x) [d](docs) [e](#top)\n"+
			"# Top\n`envtest/start.go` `start.go` `envtest/` `a/b` `./envtest/gone` `envtest.Start`\n```\n[x](gone.md) `gone.go`\n```\n"), nil},
		{"upwards", with("docs/B.md", "[a](../envtest/start.go) [b](A.md#second)"), nil},
		{"gone file", with("README.md", "\n[a](docs/GONE.md)"), []string{"README.md:2: links to docs/GONE.md, which does not exist"}},
		{"gone heading", with("README.md", "[a](docs/A.md#third)"), []string{`links to docs/A.md#third, but the headings of that file are ["the-first-one" "second"]`}},
		{"gone names", with("README.md", "`envtest/gone.go`\n`gone.go`\n`docs/reference/`"), []string{
			"README.md:1: names envtest/gone.go", "README.md:2: names gone.go", "README.md:3: names docs/reference/"}},
		{"history", with("CHANGELOG.md", "`envtest/gone.go`"), nil},
		{"history that links", with("CHANGELOG.md", "[a](gone.md)"), []string{"links to gone.md"}},
	})
}
