package checkers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
)

// maxLineBytes is the longest line that Read accepts: a list is one.
const maxLineBytes = 16 << 20

// The types of lines in a file. Each is an object with a field "type".
const (
	lineHistory   = "history"   // what is true of the whole; at most one, the first
	lineOperation = "operation" // an Operation
	lineWatch     = "watch"     // a Watch, with a number
	lineEvent     = "event"     // an Event, with the number of its watch, which is before it
	lineWrite     = "write"     // a Write
)

type historyLine struct {
	Type     string `json:"type"`
	Closed   bool   `json:"closed,omitempty"`
	Complete bool   `json:"complete,omitempty"`
}

type operationLine struct {
	Type string `json:"type"`
	Operation
}

type watchLine struct {
	Type   string `json:"type"`
	Number int    `json:"watch"`
	Watch
}

type eventLine struct {
	Type   string `json:"type"`
	Number int    `json:"watch"`
	Event
}

type writeLine struct {
	Type string `json:"type"`
	Write
}

// Write writes the history as JSON, one record per line. The field "type" says whether it
// is the "history" itself, an "operation", a "watch", an "event" or a "write"; the other
// fields are those of the types in this package. A watch has a number, by which its events
// refer to it.
func (h *History) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	lines := []any{historyLine{lineHistory, h.Closed, h.Complete}}
	for _, op := range h.Operations {
		lines = append(lines, operationLine{lineOperation, op})
	}
	for i, watch := range h.Watches {
		lines = append(lines, watchLine{lineWatch, i + 1, watch})
		for _, e := range watch.Events {
			lines = append(lines, eventLine{lineEvent, i + 1, e})
		}
	}
	for _, write := range h.Writes {
		lines = append(lines, writeLine{lineWrite, write})
	}
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("write history: %w", err)
		}
	}
	return out.Flush()
}

// ReadFile reads a file written by Write. Errors name the file and the line.
func ReadFile(path string) (*History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	defer func() { _ = f.Close() }()
	return Read(f)
}

// Read reads a history written by Write, or by hand. Errors name the line, and the file if
// r has a name.
func Read(r io.Reader) (*History, error) {
	name := "history"
	if named, ok := r.(interface{ Name() string }); ok {
		name = named.Name()
	}
	return read(name, r)
}

func read(name string, r io.Reader) (*History, error) {
	in := reading{watches: map[int]int{}, h: &History{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLineBytes)
	n := 0
	for lines.Scan() {
		n++
		if text := bytes.TrimSpace(lines.Bytes()); len(text) > 0 {
			if err := in.line(text); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, n, err)
			}
			in.read++
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, n+1, err)
	}
	return in.h, nil
}

// reading is a history that is being read.
type reading struct {
	h       *History
	watches map[int]int // their places, by number
	read    int         // lines
}

// line adds a line.
func (in *reading) line(text []byte) error {
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return fmt.Errorf("not a record: %w", err)
	}
	switch kind.Type {
	case lineHistory:
		var l historyLine
		if in.read > 0 {
			return errors.New("a line of type \"history\" must be the first")
		}
		err := decodeStrictly(text, &l)
		in.h.Closed, in.h.Complete = l.Closed, l.Complete
		return err
	case lineOperation:
		var l operationLine
		if err := decodeStrictly(text, &l); err != nil {
			return err
		}
		in.h.Operations = append(in.h.Operations, l.Operation)
		return l.Operation.validate()
	case lineWatch:
		return in.watch(text)
	case lineEvent:
		var l eventLine
		if err := decodeStrictly(text, &l); err != nil {
			return err
		}
		i, ok := in.watches[l.Number]
		if !ok {
			return fmt.Errorf("an event is of watch %d, of which there is no line before it", l.Number)
		}
		w := &in.h.Watches[i]
		if n := len(w.Events); n > 0 && w.Events[n-1].Order > l.Order {
			return fmt.Errorf("an event has the order %d, and the one before it of the same watch %d", l.Order, w.Events[n-1].Order)
		}
		w.Events = append(w.Events, l.Event)
		return l.Event.validate(*w)
	case lineWrite:
		var l writeLine
		if err := decodeStrictly(text, &l); err != nil {
			return err
		}
		in.h.Writes = append(in.h.Writes, l.Write)
		return l.Write.validate()
	}
	return fmt.Errorf("unknown type %q: want %q, %q, %q, %q or %q", kind.Type, lineHistory, lineOperation, lineWatch, lineEvent, lineWrite)
}

func (in *reading) watch(text []byte) error {
	var l watchLine
	if err := decodeStrictly(text, &l); err != nil {
		return err
	}
	if _, twice := in.watches[l.Number]; twice || l.Number <= 0 {
		return fmt.Errorf("a watch has the number %d: want one from 1 that no other has", l.Number)
	}
	in.watches[l.Number] = len(in.h.Watches)
	in.h.Watches = append(in.h.Watches, l.Watch)
	return l.Watch.validate()
}

// decodeStrictly refuses fields that the type does not have.
func decodeStrictly(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("not a record: %w", err)
	}
	if dec.More() {
		return errors.New("not a record: there is more than one in the line")
	}
	return nil
}

// validate says what no history can have.
func (h *History) validate() error {
	for _, op := range h.Operations {
		if err := op.validate(); err != nil {
			return err
		}
	}
	for _, w := range h.Watches {
		if err := w.validate(); err != nil {
			return err
		}
		for _, e := range w.Events {
			if err := e.validate(w); err != nil {
				return err
			}
		}
	}
	for _, w := range h.Writes {
		if err := w.validate(); err != nil {
			return err
		}
	}
	return nil
}

func (op Operation) validate() error {
	switch {
	case op.Method == "" || op.URI == "":
		return errors.New("an operation has no method or no URI")
	case op.Start < 0 || op.End != 0 && op.End <= op.Start:
		return fmt.Errorf("%s %s ends at %d and starts at %d: want an end after the start, or none", clean(op.Method), clean(op.URI), op.End, op.Start)
	case op.End > maxOrder || op.Start > maxOrder:
		return fmt.Errorf("%s %s has an order of more than %d", clean(op.Method), clean(op.URI), int64(maxOrder))
	case op.Code != 0 && (op.Code < 100 || op.Code > 599):
		return fmt.Errorf("%s %s has the code %d, which is no HTTP status", clean(op.Method), clean(op.URI), op.Code)
	case op.Revision < 0 || slices.ContainsFunc(op.Objects, func(o Object) bool { return o.Revision < 0 }) || op.Sent.Revision < 0:
		return fmt.Errorf("%s %s has a revision below 0", clean(op.Method), clean(op.URI))
	}
	return nil
}

// maxOrder leaves room for what the checks calculate.
const maxOrder = 1 << 60

func (w Watch) validate() error {
	switch {
	case w.URI == "":
		return errors.New("a watch has no URI")
	case w.Start < 0 || w.End != 0 && w.End <= w.Start || w.Start > maxOrder || w.End > maxOrder:
		return fmt.Errorf("the watch of %s ends at %d and starts at %d: want an end after the start, or none", clean(w.URI), w.End, w.Start)
	}
	return nil
}

func (e Event) validate(w Watch) error {
	switch {
	case e.Order <= w.Start || e.Order > maxOrder:
		return fmt.Errorf("an event of the watch of %s has the order %d, which is not after the start at %d", clean(w.URI), e.Order, w.Start)
	case e.Object.Revision < 0:
		return fmt.Errorf("an event of the watch of %s has a revision below 0", clean(w.URI))
	case !slices.Contains([]string{eventAdded, eventModified, eventDeleted, eventBookmark, eventError}, e.Type):
		return fmt.Errorf("an event of the watch of %s has the type %s, which no event has", clean(w.URI),
			strconv.Quote(clean(e.Type)))
	}
	return nil
}

func (w Write) validate() error {
	switch {
	case w.Key == "" || w.Revision <= 0 || w.Order < 0 || w.Order > maxOrder:
		return fmt.Errorf("a write of the key %s has the revision %d and the order %d: want a key, a revision from 1 and an order", strconv.Quote(clean(w.Key)), w.Revision, w.Order)
	case w.Created && w.Deleted:
		return fmt.Errorf("the write at revision %d both creates and deletes", w.Revision)
	}
	return nil
}
