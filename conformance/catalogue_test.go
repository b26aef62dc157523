package conformance_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"snowglobe.test/conformance"
)

var update = flag.Bool("update", false, "write the reference page")

const page = "../docs/reference/conformance.md"

func TestPageIsFresh(t *testing.T) {
	var fresh bytes.Buffer
	if err := conformance.List(&fresh, conformance.OutputMarkdown); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, fresh.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(committed), fresh.String()); diff != "" {
		t.Errorf("%s is stale; run: go test ./conformance -run TestPageIsFresh -update\n%s", page, diff)
	}
}

func TestCasesAreWellFormed(t *testing.T) {
	var listed bytes.Buffer
	if err := conformance.List(&listed, conformance.OutputMarkdown); err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^S\d+/[A-Za-z0-9]+(-[A-Za-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, c := range conformance.Cases() {
		switch {
		case !name.MatchString(c.ID), !strings.HasPrefix(c.ID, c.System+"/"):
			t.Errorf("ID %q of system %q", c.ID, c.System)
		case seen[c.ID]:
			t.Errorf("%s: two cases", c.ID)
		case !strings.HasSuffix(c.Promise, "."), c.Test == nil, c.Area == "":
			t.Errorf("%s: not complete: %+v", c.ID, c)
		case !strings.Contains(listed.String(), "| "+c.System+" | "):
			t.Errorf("%s: system %s has no name", c.ID, c.System)
		}
		seen[c.ID] = true
	}
	if len(seen) < 30 {
		t.Errorf("%d cases", len(seen))
	}
}

func TestList(t *testing.T) {
	var text, document bytes.Buffer
	if err := conformance.List(&text, ""); err != nil {
		t.Fatal(err)
	}
	for _, c := range conformance.Cases() {
		if !strings.Contains(text.String(), c.ID) {
			t.Errorf("%s is not listed", c.ID)
		}
	}
	if err := conformance.List(&document, conformance.OutputJSON); err != nil {
		t.Fatal(err)
	}
	var read []conformance.Case
	if err := json.Unmarshal(document.Bytes(), &read); err != nil || len(read) != len(conformance.Cases()) {
		t.Errorf("%d cases, %v", len(read), err)
	}
	if err := conformance.List(&text, "xml"); err == nil || !strings.Contains(err.Error(), `"xml" is not known`) {
		t.Errorf("error %v", err)
	}
}
