package scenarios

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"snowglobe.test/envtest/trace"
)

// story records one run in order: the script's lines and its control planes' events.
type story struct {
	mu      sync.Mutex
	began   time.Time
	seq     int64
	records []trace.Record
	planes  map[string]string // name in the process -> name in the script
	current string
}

// storyLimit is how many records of a run are kept; then the older half is
// dropped. A script makes about ten thousand per day of virtual time.
const storyLimit = 1 << 17

// lineKind is the kind of a script's own line in the story.
type lineKind string

// The kinds, each the prefix of its lines.
const (
	phaseLine   lineKind = "# "
	commandLine lineKind = "> "
	noteLine    lineKind = ""
)

func newStory() *story {
	return &story{began: time.Now(), planes: map[string]string{}, current: planeName(1)}
}

// planeName names a script's control planes in the order of their starts. Their
// names in the process depend on what else has run in it.
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

// expectServer makes the lines that follow belong to the next server.
func (s *story) expectServer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = planeName(len(s.planes) + 1)
}

func (s *story) addLine(kind lineKind, text string) {
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

// snapshot returns a copy of all records so far.
func (s *story) snapshot() []trace.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}
