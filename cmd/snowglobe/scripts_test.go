package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"snowglobe.test/internal/pages"
	"snowglobe.test/scenarios/script"
)

// TestCheckScripts tells all mistakes of all scripts, and that nothing was run.
func TestCheckScripts(t *testing.T) {
	var told bytes.Buffer
	good := script.Parse("good.txtar", script.Template())
	wrong := script.Parse("wrong.txtar", []byte("strat\nready\nadvance 10\n"))
	assert.NoError(t, checkScripts(&told, good))
	assert.Empty(t, told.String())
	err := checkScripts(&told, good, wrong)
	var stderr bytes.Buffer
	assert.Equal(t, exitUnjudged, exitCode(&stderr, "snowglobe run", err), "the exit code of %v", err)
	assert.EqualError(t, err, "nothing was run: mistakes in scripts: 2")
	pages.Troubleshooting(t, "../..", err.Error())
	want := "wrong.txtar:1: unknown command \"strat\"; did you mean start?\n" +
		"wrong.txtar:3: advance: wrong arguments: \"10\" is not a duration like 10m (usage: advance DURATION)\n"
	assert.Equal(t, want, told.String())
}
