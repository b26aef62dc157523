package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/script"
)

// Whoever runs the library reads a line for each story, and all of one that fails.
func TestLines(t *testing.T) {
	parse := func(name string) script.Script {
		return script.Parse(name+".txtar", []byte("# It begins.\n# It is long. And so on.\nstart\n"))
	}
	records := []trace.Record{{Event: trace.Note{Text: "> start"}}}
	results := []scenarios.Result{
		{Script: parse("good"), Status: scenarios.Passed, Scripted: 3 * time.Second, Records: records},
		{Script: parse("bad"), Status: scenarios.Failed, Err: errors.New("bad.txtar:3: start: no"), Records: records},
		{Script: parse("slow-one"), Status: scenarios.Skipped, Reason: "it takes hours"},
	}
	var out strings.Builder
	report := newLineReporter(&out, []script.Script{results[0].Script, results[1].Script, results[2].Script})
	for _, result := range results {
		report.begin(result.Script)
		require.NoError(t, report.script(result))
	}
	require.NoError(t, report.summarize(results, time.Minute))
	lines := strings.Split(out.String(), "\n")
	assert.Equal(t, "✓ passed   good            3s  It begins.", lines[0])
	assert.Equal(t, "━━ bad  bad.txtar", lines[1])
	assert.Contains(t, out.String(), "> start\n")
	assert.Equal(t, 1, strings.Count(out.String(), "> start"), "only that of the failing one")
	assert.Contains(t, lines, "  ✗ failed  bad.txtar:3: start: no")
	assert.Contains(t, lines, "- skipped  slow-one        0s  it takes hours")
	assert.Contains(t, lines, "1 passed, 1 failed, 1 skipped in 1m0s")
}

func TestCut(t *testing.T) {
	for width, want := range map[int]string{0: "über uns", -3: "über uns", 8: "über uns", 5: "über…"} {
		assert.Equal(t, want, cut("über uns", width), width)
	}
}
