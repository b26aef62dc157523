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

// Every word of rules is explained, in the order in which rules have them.
func TestLegends(t *testing.T) {
	words := func(of []legend) []string {
		var all []string
		for _, l := range of {
			assert.NotEmpty(t, l.meaning, l.word)
			all = append(all, l.word)
		}
		return all
	}
	var keys []string
	for i := range ruleKeys {
		keys = append(keys, ruleKeys[i].name)
	}
	assert.Equal(t, texts(actionKinds[:]), words(actionLegend))
	assert.Equal(t, keys, words(keyLegend))
	assert.ElementsMatch(t, texts(Failures()), words(failureLegend))
}

// The rules by which the page explains itself are rules.
func TestReferenceRules(t *testing.T) {
	_, text, _ := strings.Cut(referenceHead, "```\n")
	text, _, _ = strings.Cut(text, "```")
	plan, err := ParsePlan("points.md", text, nil)
	require.NoError(t, err)
	assert.Len(t, plan, 4)
}
