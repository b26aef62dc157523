package fault

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOccurrencesAreBounded counts far more identities than are remembered, and one
// among them that comes again and again.
func TestOccurrencesAreBounded(t *testing.T) {
	const often, each = 0, generation / 2
	o, want := newOccurrences(), 0
	for id := uint64(1); id <= 4*generation; id++ {
		require.Equal(t, 1, o.next(id), "%d is new, and counted as number", id)
		if id%each == 0 {
			want++
			assert.Equal(t, want, o.next(often))
		}
	}
	assert.LessOrEqual(t, len(o.younger)+len(o.older), 2*generation)
	assert.Equal(t, 2, o.next(4*generation-generation/4), "not long ago")
	assert.Equal(t, 1, o.next(1), "forgotten")
}
