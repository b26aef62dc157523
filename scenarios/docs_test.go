package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"snowglobe.test/internal/pages"
)

// TestDocuments runs the scripts in the pages, and reads their YAML.
func TestDocuments(t *testing.T) {
	blocks, err := pages.Blocks("..")
	if err != nil {
		t.Fatal(err)
	}
	scripts, documents := 0, 0
	for _, block := range blocks {
		switch {
		case block.Language == "yaml":
			documents++
			if err := yaml.Unmarshal(block.Text, new(any)); err != nil {
				t.Errorf("%s: %v in\n%s", block.File, err, block.Text)
			}
		case block.Language == "" && strings.Contains("\n"+string(block.Text), "\nstart"):
			scripts++
			t.Run(filepath.Base(block.File), func(t *testing.T) { runDocumented(t, block.Text) })
		}
	}
	if scripts < 2 || documents < 2 {
		t.Errorf("the pages have %d scripts and %d YAML documents; the test looks at the wrong blocks", scripts, documents)
	}
}

func runDocumented(t *testing.T, text []byte) {
	file := filepath.Join(t.TempDir(), "documented.txtar")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	Test(t, file)
}
