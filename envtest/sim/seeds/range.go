// Package seeds runs a test binary once for each of many seeds: a Search hands out the turns
// and collects the results, and go test -exec calls Run in the place of each test binary that
// it has built. It knows nothing of Kubernetes.
package seeds

import (
	"fmt"
	"strconv"
	"strings"
)

// Range is the seeds from First to Last.
type Range struct{ First, Last uint64 }

// ParseRange reads "100", which is 1 to 100, or "20-30".
func ParseRange(text string) (Range, error) {
	first, last, both := strings.Cut(text, "-")
	if !both {
		first, last = "1", text
	}
	from, firstErr := strconv.ParseUint(first, 10, 64)
	to, lastErr := strconv.ParseUint(last, 10, 64)
	if firstErr != nil || lastErr != nil || to < from {
		return Range{}, fmt.Errorf("seeds %q: say how many, as in 100, or from which to which, as in 20-30", text)
	}
	return Range{from, to}, nil
}

// String is what ParseRange reads.
func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }
