package scenarios

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// block is a fenced block of a page, with its language.
var block = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// TestDocuments runs the scripts in the pages, and reads their YAML.
func TestDocuments(t *testing.T) {
	scripts, documents := 0, 0
	for _, pattern := range []string{"../README.md", "../docs/*.md", "../docs/guides/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no page, %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range block.FindAllSubmatch(text, -1) {
				switch language, text := string(m[1]), m[2]; {
				case language == "yaml":
					documents++
					if err := yaml.Unmarshal(text, new(any)); err != nil {
						t.Errorf("%s: %v in\n%s", file, err, text)
					}
				case language == "" && strings.Contains("\n"+string(text), "\nstart"):
					scripts++
					t.Run(filepath.Base(file), func(t *testing.T) { runDocumented(t, text) })
				}
			}
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
