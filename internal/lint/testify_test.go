package lint

import (
	"strings"
	"testing"
)

// testify is the rule that only tests import testify, which who requires this module then need not build.
func testify(t *tree) []string {
	var complaints []string
	for _, f := range t.files {
		if !f.isGo() || f.isTest() {
			continue
		}
		for _, i := range f.imports {
			if strings.HasPrefix(i.path, "github.com/stretchr/testify/") {
				complaints = append(complaints, complaint(f, i.line, "only a test may import %s", i.path))
			}
		}
	}
	return complaints
}

func TestTestify(t *testing.T) { obeys(t, testify(repository(t))) }

func TestTestifyComplains(t *testing.T) {
	const content = "package a\nimport _ \"github.com/stretchr/testify/assert\"\n"
	try(t, testify, []fixture{
		{"good", map[string]string{"a/a_test.go": content}, nil},
		{"bad", map[string]string{"a/b.go": content}, []string{"a/b.go:2: only a test may import"}},
	})
}
