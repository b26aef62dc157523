package scenarios

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestExcerpt shows what a command has printed that stdout or stderr did not match.
func TestExcerpt(t *testing.T) {
	assert.Equal(t, ":\n  color: green\n  name: a", excerpt("color: green\nname: a\n"))
	assert.Equal(t, "; it was empty", excerpt(""))
	assert.Equal(t, maxOutput+1, strings.Count(excerpt(strings.Repeat("x\n", 2*maxOutput)), "\n  "))
}

// TestLastOutput finds what the last command of a script has printed, and not an older one.
func TestLastOutput(t *testing.T) {
	commands := map[string]bool{"get": true, "advance": true}
	const get = "# a phase\n> get a\n[stdout]\ncolor: green\n[stderr]\nslow\n"
	for log, want := range map[string]string{
		get + "> stdout red\n":                          "color: green",
		get + "> env A=b\n> ! stdout green\n":           "color: green",
		"> [virtual] ! get a\n[stdout]\nup\n> stdout x": "up\n",
		get + "> advance 1s\n> stdout red\n":            "",
	} {
		output, known := lastOutput(log, "stdout", commands)
		assert.True(t, known, log)
		assert.Equal(t, strings.TrimSpace(want), strings.TrimSpace(output), log)
	}
	output, _ := lastOutput(get+"> stderr fast\n", "stderr", commands)
	assert.Equal(t, "slow", strings.TrimSpace(output))
	_, known := lastOutput("# a phase\n> stdout red\n", "stdout", commands)
	assert.False(t, known, "it was before the phase")
}
