package load

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSaturated: only those who are no laggards have to follow.
func TestSaturated(t *testing.T) {
	load := Result{Shape: Shape{Watchers: 4, Namespaces: 1, Selectors: 1}, RateAsked: 100, DeliveriesPerSecond: 200}
	assert.True(t, load.Saturated())
	load.Laggards = &Laggards{Slow: 1, Stalled: 1}
	assert.False(t, load.Saturated())
}
