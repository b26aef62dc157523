package scenarios

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the reference page")

const referencePage = "../docs/reference/scripts.md"

func TestReference(t *testing.T) {
	var page bytes.Buffer
	if err := WriteReference(&page); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll("../docs/reference", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(referencePage, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, page.Bytes()) {
		t.Error("docs/reference/scripts.md does not match the usage texts; run: go test ./scenarios -run TestReference -update")
	}
}

func TestCommandsAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range commands() {
		if seen[c.name] {
			t.Errorf("%s is there twice", c.name)
		}
		seen[c.name] = true
		if c.summary == "" || c.details == "" || c.example == "" {
			t.Errorf("%s lacks a summary, details or an example", c.name)
		}
		if strings.HasSuffix(c.summary, ".") || c.summary != strings.TrimSpace(c.summary) {
			t.Errorf("%s: the summary %q is not a bare imperative", c.name, c.summary)
		}
		if !strings.Contains("\n"+c.example+" ", "\n"+c.name+" ") && !strings.Contains("\n"+c.example+"\n", "\n"+c.name+"\n") {
			t.Errorf("%s: the example does not use it", c.name)
		}
	}
}
