package scenarios

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"snowglobe.test/envtest/trace"
)

// story is everything that happens in one run of a script, in one order: the
// script's own lines and the events of every control plane it starts.
type story struct {
	mu      sync.Mutex
	began   time.Time
	seq     int64
	records []trace.Record
	planes  map[string]string // names in the process -> names in the script
	current string
}

// storyLimit bounds what is kept of a run; the oldest half goes first. A script
// that lets days pass makes some ten thousand records a day.
const storyLimit = 1 << 17

// A lineKind says what a script's own line in the story is.
type lineKind string

// The kinds, as the marks with which their text begins.
const (
	phaseLine   lineKind = "# "
	commandLine lineKind = "> "
	noteLine    lineKind = ""
)

func newStory() *story {
	return &story{began: time.Now(), planes: map[string]string{}, current: planeName(1)}
}

// planeName names a script's control planes in the order of their starts; their
// names in the process depend on what ran before.
func planeName(number int) string { return fmt.Sprintf("server-%d", number) }

// observe adds an event of a control plane.
func (s *story) observe(rec trace.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, known := s.planes[rec.ControlPlane]
	if !known {
		name = planeName(len(s.planes) + 1)
		s.planes[rec.ControlPlane] = name
		s.current = name
	}
	s.add(rec.Time, name, rec.Event)
}

// expectServer says that the lines that follow are about a new server.
func (s *story) expectServer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = planeName(len(s.planes) + 1)
}

// tell adds a line of the script.
func (s *story) tell(kind lineKind, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(time.Now(), s.current, trace.Note{Text: string(kind) + text})
}

func (s *story) add(at time.Time, plane string, event trace.Event) {
	s.seq++
	if len(s.records) == storyLimit {
		s.records = append(s.records[:0], s.records[storyLimit/2:]...)
	}
	s.records = append(s.records, trace.Record{
		Seq: s.seq, Time: at, Elapsed: at.Sub(s.began), ControlPlane: plane, Event: event,
	})
}

// told returns a copy of all that has happened so far.
func (s *story) told() []trace.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}
