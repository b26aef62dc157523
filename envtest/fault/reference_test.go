package fault

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the reference page")

const referencePage = "../../docs/reference/points.md"

func TestReference(t *testing.T) {
	var page bytes.Buffer
	require.NoError(t, WriteReference(&page))
	if *update {
		require.NoError(t, os.WriteFile(referencePage, page.Bytes(), 0o644))
	}
	have, err := os.ReadFile(referencePage)
	require.NoError(t, err)
	if !bytes.Equal(have, page.Bytes()) {
		t.Error("docs/reference/points.md is not what the catalogue says; run: go test ./envtest/fault -run TestReference -update")
	}
}

// Every word of rules is explained.
func TestLegends(t *testing.T) {
	for _, a := range actions {
		assert.NotEmpty(t, a.meaning, a.kind)
	}
	for _, k := range ruleKeys {
		assert.NotEmpty(t, k.meaning, k.name)
	}
	var names []Failure
	for _, f := range failures {
		assert.NotEmpty(t, f.meaning, f.name)
		names = append(names, f.name)
	}
	assert.ElementsMatch(t, Failures(), names)
}

// The rules by which the page explains itself are rules.
func TestReferenceRules(t *testing.T) {
	_, text, _ := strings.Cut(referenceHead, "```\n")
	text, _, _ = strings.Cut(text, "```")
	plan, err := ParsePlan("points.md", text, nil)
	require.NoError(t, err)
	assert.Len(t, plan, 4)
}
