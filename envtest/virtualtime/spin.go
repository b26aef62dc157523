package virtualtime

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// spinFactor multiplies the patience with a goroutine that runs while time stands still. It
// may be computing something, so it is named and goes on.
const spinFactor = 4

// spinning finds the goroutine that runs for so long, in wall time, that virtual time stands still. In sim mode
// Go's runtime does.
type spinning struct {
	bubble  string
	moments func() uint64 // changes when time moves, or something happens
	seen    uint64
	since   time.Duration     // the monitor's age when it has changed
	before  map[string]string // the goroutines that ran at half the patience
	named   bool
}

// name writes the stack of that goroutine, once for each moment of virtual time.
func (s *spinning) name(m *monitor, patience time.Duration, to io.Writer) {
	if s == nil {
		return
	}
	if n := s.moments(); n != s.seen {
		s.seen, s.since, s.before, s.named = n, m.age, nil, false
		return
	}
	stood := m.age - s.since
	switch {
	case s.named || stood < patience/2:
	case stood >= patience:
		s.named = true
		if stack := s.suspect(m.running(s.bubble)); stack != "" {
			fmt.Fprintf(to, "snowglobe: virtual time has stood still for %s on the wall, because this goroutine runs (a loop that waits for time has to sleep):\n\n%s\n\n", stood.Round(time.Millisecond), stack)
		}
	case s.before == nil:
		s.before = m.running(s.bubble)
	}
}

// suspect is the stack of one that runs and has run before.
func (s *spinning) suspect(running map[string]string) string {
	for id, stack := range running {
		if s.before[id] != "" {
			return stack
		}
	}
	return ""
}

// running are the stacks of a bubble's goroutines that run, by their numbers.
func (m *monitor) running(bubble string) map[string]string {
	stacks := map[string]string{}
	for block := range strings.SplitSeq(m.dump(), "\n\n") {
		if g, ok := parseHeader(block); ok && g.bubble == bubble && g.runs() {
			stacks[g.id] = block
		}
	}
	return stacks
}
