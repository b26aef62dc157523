package load

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTally has one watcher of three groups see all that there is, in several wrong ways.
func TestTally(t *testing.T) {
	n := numbering{events: 10, Objects: 4, Groups: 3} // group 1 has object 1: events 1, 5, 9, and 11 at the end
	for name, test := range map[string]struct {
		sees []int
		want string
	}{
		"all":       {[]int{1, 5, 9, 11}, ""},
		"none":      {nil, "missed 3 of 3 events, the first of them number 2"},
		"last lost": {[]int{1, 5, 11}, "missed 1 of 3 events, the first of them number 10"},
		"again":     {[]int{1, 5, 5, 9, 11}, "saw 1 events again"},
		"late":      {[]int{1, 9, 5, 11}, "saw 1 events after a newer one of the same object"},
		"foreign":   {[]int{1, 2, 5, 9, 11}, "saw 1 events that it had not selected"},
	} {
		t.Run(name, func(t *testing.T) {
			tally := newTally(n, 1)
			counted := 0
			for _, event := range test.sees {
				counts, err := tally.see(event)
				require.NoError(t, err)
				if counts {
					counted++
				}
			}
			assert.Equal(t, test.want, tally.defects())
			assert.Equal(t, tally.seen, counted)
			assert.Equal(t, test.sees != nil, tally.ended())
		})
	}
	tally := newTally(n, 0) // objects 0 and 3
	assert.Equal(t, 5, tally.expected, "0, 4, 8, 3 and 7")
	assert.Equal(t, 2, tally.open)
	_, err := tally.see(14)
	assert.ErrorContains(t, err, "event 14 is not of this load")
}
