package load

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPaces(t *testing.T) {
	for name, test := range map[string]struct {
		opts Options
		want []pace
	}{
		"none": {Options{Shape: Shape{Watchers: 2}}, []pace{paceFull, paceFull}},
		"both": {Options{Shape: Shape{Watchers: 4}, Pace: Pace{Slow: 0.25, Stalled: 0.5}},
			[]pace{paceFull, paceSlow, paceStalled, paceStalled}},
		"less than one": {Options{Shape: Shape{Watchers: 2}, Pace: Pace{Slow: 0.1}}, []pace{paceFull, paceFull}},
	} {
		var paces []pace
		for number := range test.opts.Watchers {
			paces = append(paces, test.opts.paceOf(number))
		}
		assert.Equal(t, test.want, paces, name)
	}
}
