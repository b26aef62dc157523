package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"snowglobe.test/internal/pages"
	"snowglobe.test/scenarios/script"
)

// TestDocuments lints and runs the scripts in the pages, and reads their YAML.
func TestDocuments(t *testing.T) {
	blocks, err := pages.Blocks("..")
	require.NoError(t, err)
	scripts, documents := 0, 0
	for _, block := range blocks {
		switch {
		case block.Language == "yaml":
			documents++
			assert.NoError(t, yaml.Unmarshal(block.Text, new(any)), "%s: in\n%s", block.File, block.Text)
		case block.Language == "" && strings.Contains("\n"+string(block.Text), "\nstart"):
			scripts++
			t.Run(filepath.Base(block.File), func(t *testing.T) { runDocumented(t, block.Text) })
		}
	}
	assert.GreaterOrEqual(t, scripts, 2, "scripts on the pages; the test looks at the wrong blocks")
	assert.GreaterOrEqual(t, documents, 2, "YAML documents on the pages; the test looks at the wrong blocks")
}

func runDocumented(t *testing.T, text []byte) {
	file := filepath.Join(t.TempDir(), "documented.txtar")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	lint(t, file)
	Test(t, file)
}

// TestScriptsAreClean lints what is given to people as examples: what scenario new writes,
// and the scripts of the repository's tests and examples.
func TestScriptsAreClean(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new.txtar")
	require.NoError(t, os.WriteFile(file, script.Template(), 0o600))
	lint(t, file, "testdata", "explore/testdata", "../examples/consumer/testdata")
}

// lint fails the test for each mistake of the scripts.
func lint(t *testing.T, names ...string) {
	t.Helper()
	scripts, err := Find(names...)
	require.NoError(t, err)
	for _, one := range scripts {
		mistakes, _ := Lint(one)
		for _, mistake := range mistakes {
			t.Error(mistake)
		}
	}
}
