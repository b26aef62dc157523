package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTiming(t *testing.T) {
	for _, test := range []struct {
		samples          []time.Duration
		median, min, max time.Duration
	}{
		{nil, 0, 0, 0},
		{[]time.Duration{7}, 7, 7, 7},
		{[]time.Duration{9, 1, 5}, 5, 1, 9},
		{[]time.Duration{8, 2, 4, 100}, 6, 2, 100},
	} {
		got := NewTiming(test.samples)
		assert.Equal(t, test.median, got.Median, "%v: got %+v", test.samples, got)
		assert.Equal(t, test.min, got.Min, "%v: got %+v", test.samples, got)
		assert.Equal(t, test.max, got.Max, "%v: got %+v", test.samples, got)
	}
	assert.Equal(t, 0.5, NewTiming([]time.Duration{3}).Ratio(NewTiming([]time.Duration{6})))
	assert.Equal(t, float64(0), NewTiming([]time.Duration{3}).Ratio(Timing{}), "ratio to nothing")
}

func TestRound(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234567890: "1.235s", 35123456: "35.12ms", 1234: "1.234µs", 999: "999ns", 0: "0s", 12345678901: "12.35s",
	} {
		assert.Equal(t, want, Round(d).String(), "%d", d)
	}
}
