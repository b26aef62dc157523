package lint

import (
	"path"
	"strings"
	"testing"
)

// mocks is the rule that generated mocks live in packages whose names end in "mock",
// and that only tests import them.
func mocks(t *tree) []string {
	var complaints []string
	for _, f := range t.files {
		if !f.isGo() || f.isTest() || isMock(f.dir()) {
			continue
		}
		for _, i := range f.imports {
			if inside, ok := strings.CutPrefix(i.path, modulePath+"/"); ok && isMock(inside) {
				complaints = append(complaints, complaint(f, i.line, "only a test may import the mock %s", inside))
			}
			if strings.HasPrefix(i.path, "github.com/stretchr/testify/") {
				complaints = append(complaints, complaint(f, i.line, "only a mock or a test may import %s", i.path))
			}
		}
	}
	return complaints
}

func isMock(pkg string) bool { return strings.HasSuffix(path.Base(pkg), "mock") }

func TestMocks(t *testing.T) { obeys(t, mocks(repository(t))) }

func TestMocksComplains(t *testing.T) {
	const mocked, testify = modulePath + "/envtest/storage/storagemock", "github.com/stretchr/testify/mock"
	importing := func(p string) string { return "package a\nimport _ \"" + p + "\"\n" }
	try(t, mocks, []fixture{
		{"good", map[string]string{"a/a_test.go": importing(mocked), "envtest/storage/storagemock/a.go": importing(testify)}, nil},
		{"bad", map[string]string{"a/a.go": importing(mocked), "a/b.go": importing(testify)}, []string{
			"a/a.go:2: only a test may import the mock", "a/b.go:2: only a mock or a test"}},
	})
}
