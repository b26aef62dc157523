package engine

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
