package scenarios

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestLastOutput shows what a command has printed that stdout or stderr did not match.
func TestLastOutput(t *testing.T) {
	const log = "\n> start\n[stdout]\nup\n> get a\n[stdout]\ncolor: green\nname: a\n[stderr]\nslow\n> stdout red\n"
	assert.Equal(t, ":\n  color: green\n  name: a", lastOutput(log, "stdout"))
	assert.Equal(t, ":\n  slow", lastOutput(log, "stderr"))
	assert.Equal(t, "; it was empty", lastOutput("\n> start\n", "stdout"))
	long := "\n[stdout]\n" + strings.Repeat("x\n", 2*maxOutput)
	assert.Equal(t, maxOutput+1, strings.Count(lastOutput(long, "stdout"), "\n  "))
}
