package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// maxJSONLineBytes is the longest line that ReadJSON accepts.
const maxJSONLineBytes = 16 << 20

// jsonHead is what the line of every record has; the fields of its event follow.
type jsonHead struct {
	Record
	Type  string  `json:"type"`
	Error *string `json:"error,omitempty"` // tells no error (nil) from one without text
}

// jsonTypes are the types of events, by the names that WriteJSON gives them.
var jsonTypes = typesByName(Stage{}, Signal{}, Hook{}, Check{}, Request{}, Fault{}, Note{}, Answer{}, WatchEvent{}, Write{}, Turn{})

func typesByName(events ...Event) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, e := range events {
		types[typeName(e)] = reflect.TypeOf(e)
	}
	return types
}

func typeName(e Event) string { return strings.ToLower(reflect.TypeOf(e).Name()) }

// WriteJSON writes records as JSON, one object per line. The field "type" is the
// event's type in lower case, such as "hook", and times are UTC.
func WriteJSON(w io.Writer, recs []Record) error {
	out := bufio.NewWriter(w)
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	for _, rec := range recs {
		line.Reset()
		head := jsonHead{Record: rec, Type: typeName(rec.Event)}
		head.Time = rec.Time.UTC()
		if failed := reflect.ValueOf(rec.Event).FieldByName("Err"); failed.IsValid() && !failed.IsNil() {
			head.Error = new(failed.Interface().(error).Error())
		}
		if err := errors.Join(enc.Encode(head), enc.Encode(rec.Event)); err != nil {
			return fmt.Errorf("trace: record %d: %w", rec.Seq, err)
		}
		// Two objects become one: no event is without a field.
		if _, err := out.Write(bytes.Replace(line.Bytes(), []byte("}\n{"), []byte(","), 1)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// ReadJSON reads what WriteJSON wrote. Errors keep only their text; times lose
// their monotonic reading.
func ReadJSON(r io.Reader) ([]Record, error) {
	var recs []Record
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxJSONLineBytes)
	n := 0
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		rec, err := readRecord(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("trace: line %d %w", n, err)
		}
		recs = append(recs, rec)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("trace: after line %d: %w", n, err)
	}
	return recs, nil
}

func readRecord(line []byte) (Record, error) {
	var head jsonHead
	var fields map[string]json.RawMessage
	err := json.Unmarshal(line, &fields)
	if err == nil {
		err = json.Unmarshal(line, &head)
	}
	if err != nil {
		return Record{}, fmt.Errorf("is not a record: %w", err)
	}
	for _, name := range []string{"seq", "time", "elapsedNanos", "controlPlane", "apiServer", "type", "error"} {
		delete(fields, name)
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return Record{}, err
	}
	known := jsonTypes[head.Type]
	if known == nil {
		return Record{}, fmt.Errorf("has the unknown type %q: it was written by another version, or is not a trace", head.Type)
	}
	event := reflect.New(known)
	dec := json.NewDecoder(bytes.NewReader(rest))
	dec.DisallowUnknownFields()
	if err := dec.Decode(event.Interface()); err != nil {
		return Record{}, fmt.Errorf("is not a record: %w", err)
	}
	if field := event.Elem().FieldByName("Err"); field.IsValid() && head.Error != nil {
		field.Set(reflect.ValueOf(errors.New(*head.Error)))
	}
	head.Event = event.Elem().Interface().(Event)
	return head.Record, validate(head.Event)
}

// validate says what an event can't be.
func validate(e Event) error {
	switch e := e.(type) {
	case Stage:
		return e.Phase.among(e, Start, End)
	case Request:
		return e.Phase.among(e, Start, End)
	case Fault:
		return e.Phase.among(e, Held, Released, Applied)
	case Hook:
		if kinds := []HookKind{PostStart, PreShutdown}; !slices.Contains(kinds, e.Kind) {
			return fmt.Errorf("has a hook, which cannot be of kind %q; want one of %q", e.Kind, kinds)
		}
		return e.Phase.among(e, Held, Released, Start, End)
	}
	return nil
}

func (p Phase) among(e Event, phases ...Phase) error {
	if slices.Contains(phases, p) {
		return nil
	}
	return fmt.Errorf("has a %s, which cannot have the phase %q; want one of %q", typeName(e), p, phases)
}
