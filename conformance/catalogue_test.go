package conformance_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/reports"
	"snowglobe.test/conformance/suite"
)

var update = flag.Bool("update", false, "write the reference page")

const page = "../docs/reference/conformance.md"

func TestPageIsFresh(t *testing.T) {
	fresh := reference()
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(fresh), 0o644))
	}
	committed, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(string(committed), fresh), "%s is stale; run: go test ./conformance -run "+
		"TestPageIsFresh -update", page)
}

func TestCasesAreWellFormed(t *testing.T) {
	listed := reference()
	name := regexp.MustCompile(`^S\d+/[A-Za-z0-9]+(-[A-Za-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, c := range conformance.Cases() {
		switch {
		case !name.MatchString(c.ID), !strings.HasPrefix(c.ID, c.System+"/"):
			t.Errorf("ID %q of system %q", c.ID, c.System)
		case seen[c.ID]:
			t.Errorf("%s: two cases", c.ID)
		case !strings.HasSuffix(c.Promise, "."), c.Test == nil, c.Area == "", c.Source == "",
			c.Level != suite.Core && c.Level != suite.Versioned:
			t.Errorf("%s: not complete: %+v", c.ID, c)
		case !strings.Contains(listed, "| "+c.System+" | "):
			t.Errorf("%s: system %s has no name", c.ID, c.System)
		}
		seen[c.ID] = true
	}
	assert.GreaterOrEqual(t, len(seen), 260, "cases")
}

// TestEverySystemIsCovered shows that each system of the server has at least eight cases, of
// which two are about failure.
func TestEverySystemIsCovered(t *testing.T) {
	cases, failures := map[string]int{}, map[string]int{}
	for _, c := range conformance.Cases() {
		cases[c.System]++
		if c.Failure {
			failures[c.System]++
		}
	}
	for i := range 20 {
		system := fmt.Sprint("S", i+1)
		assert.GreaterOrEqual(t, cases[system], 8, "cases of %s", system)
		assert.GreaterOrEqual(t, failures[system], 2, "cases of %s about failure", system)
	}
}

func TestList(t *testing.T) {
	var text, document bytes.Buffer
	require.NoError(t, reports.List(&text, conformance.Cases(), ""))
	for _, c := range conformance.Cases() {
		assert.Contains(t, text.String(), c.ID)
	}
	require.NoError(t, reports.List(&document, conformance.Cases(), reports.OutputJSON))
	var read []suite.Case
	assert.NoError(t, json.Unmarshal(document.Bytes(), &read))
	assert.Len(t, read, len(conformance.Cases()))
	assert.ErrorContains(t, reports.List(&text, conformance.Cases(), "xml"), `"xml" is not known`)
}
