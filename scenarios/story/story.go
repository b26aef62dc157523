// Package story owns the story of a run: the trace records of its control planes and the
// script's own lines, in one order, and the text that people read. It never decides what
// happens, and knows about commands only what a story says about them.
package story

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/redact"
)

// Story records one run in order: the script's lines and its control planes' events. Make
// it with New.
type Story struct {
	mu      sync.Mutex
	began   time.Time
	seq     int64
	records []trace.Record
	planes  map[string]*numbered // by their names in the process
	current string
}

// limit is how many records of a run are kept. When there are more, the older half is
// dropped. A script makes about ten thousand per day of virtual time.
const limit = 1 << 17

// lineKind is the kind of a script's own line in the story.
type lineKind string

// The kinds, each the prefix of its lines.
const (
	phaseLine   lineKind = "# "
	commandLine lineKind = "> "
)

// New begins a story, now.
func New() *Story {
	return &Story{began: time.Now(), planes: map[string]*numbered{}, current: planeName(1)}
}

// planeName names a script's control planes in the order of their starts. A story can't use
// their names in the process, which depend on what else has run in it.
func planeName(number int) string { return fmt.Sprintf("server-%d", number) }

// Observe adds an event of a control plane.
func (s *Story) Observe(rec trace.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plane, known := s.planes[rec.ControlPlane]
	if !known {
		plane = &numbered{name: planeName(len(s.planes) + 1)}
		s.planes[rec.ControlPlane] = plane
		s.current = plane.name
	}
	s.add(rec.Time, plane.name, plane.renumbered(rec.Event))
	last := &s.records[len(s.records)-1]
	last.Server = rec.Server
	plane.seqs = append(plane.seqs, seqs{rec.Seq, last.Seq})
}

// numbered is a control plane in the story.
type numbered struct {
	name string // in the script
	seqs []seqs // of its records, ascending
}

// seqs are the two numbers of one record: in the trace of its control plane, and in the story.
type seqs struct{ plane, story int64 }

// renumbered returns the event with its field Asked translated: from the number of a record
// in the control plane's trace to the number of that record, or the one before it, in the story.
func (p *numbered) renumbered(event trace.Event) trace.Event {
	number := func(asked int64) int64 {
		i, found := slices.BinarySearchFunc(p.seqs, asked, func(s seqs, asked int64) int { return cmp.Compare(s.plane, asked) })
		switch {
		case found:
			return p.seqs[i].story
		case i > 0:
			return p.seqs[i-1].story
		}
		return 0
	}
	switch e := event.(type) {
	case trace.Answer:
		e.Asked = number(e.Asked)
		return e
	case trace.WatchEvent:
		e.Asked = number(e.Asked)
		return e
	}
	return event
}

// ExpectServer makes the lines that follow belong to the next server.
func (s *Story) ExpectServer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = planeName(len(s.planes) + 1)
}

// Phase adds a paragraph of the script's comments.
func (s *Story) Phase(text string) { s.addLine(phaseLine, text) }

// IsCommand reports whether a record is the line of a command with a name.
func IsCommand(rec trace.Record, name string) bool {
	note, ok := rec.Event.(trace.Note)
	return ok && strings.HasPrefix(note.Text, string(commandLine)+name+" ")
}

// Command adds a line of a command.
func (s *Story) Command(line string) { s.addLine(commandLine, line) }

// Note adds a line of text.
func (s *Story) Note(text string) { s.addLine("", text) }

func (s *Story) addLine(kind lineKind, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(time.Now(), s.current, trace.Note{Text: redact.Text(string(kind) + text)})
}

func (s *Story) add(at time.Time, plane string, event trace.Event) {
	s.seq++
	if len(s.records) == limit {
		s.records = append(s.records[:0], s.records[limit/2:]...)
	}
	s.records = append(s.records, trace.Record{
		Seq: s.seq, Time: at, Elapsed: at.Sub(s.began), ControlPlane: plane, Event: event,
	})
}

// Began is when the story began, by the script's clock.
func (s *Story) Began() time.Time { return s.began }

// Records returns a copy of all records so far.
func (s *Story) Records() []trace.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}
