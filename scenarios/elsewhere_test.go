package scenarios

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/hostile"
	"snowglobe.test/scenarios/script"
)

// TestElsewhere tells a story in the environment of another user's machine: what client-go reads
// there is said to that user's clients, and not to scripts'.
func TestElsewhere(t *testing.T) { hostile.Again(t, "TestStory") }

func TestStory(t *testing.T) {
	stories := Library()
	i := slices.IndexFunc(stories, func(s script.Script) bool { return s.Name == "limit-range" })
	require.GreaterOrEqual(t, i, 0)
	result := Run(t.Context(), stories[i], Options{})
	assert.Equal(t, Passed, result.Status, "%v", result.Err)
}
