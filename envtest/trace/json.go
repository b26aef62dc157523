package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// maxJSONLineBytes is the longest line that ReadJSON accepts.
const maxJSONLineBytes = 16 << 20

// jsonRecord is a record and its event, flat. Type decides which fields are present.
type jsonRecord struct {
	Seq          int64     `json:"seq"`
	Time         time.Time `json:"time"`
	ElapsedNanos int64     `json:"elapsedNanos"`
	ControlPlane string    `json:"controlPlane,omitempty"`
	APIServer    string    `json:"apiServer,omitempty"`
	Type         string    `json:"type"`

	Name           string   `json:"name,omitempty"`
	Phase          Phase    `json:"phase,omitempty"`
	Kind           HookKind `json:"kind,omitempty"`
	Endpoint       string   `json:"endpoint,omitempty"`
	OK             bool     `json:"ok,omitempty"`
	Reason         string   `json:"reason,omitempty"`
	Method         string   `json:"method,omitempty"`
	URI            string   `json:"uri,omitempty"`
	Verb           string   `json:"verb,omitempty"`
	User           string   `json:"user,omitempty"`
	UserAgent      string   `json:"userAgent,omitempty"`
	Code           int      `json:"code,omitempty"`
	Server         string   `json:"server,omitempty"`
	DurationNanos  int64    `json:"durationNanos,omitempty"`
	Text           string   `json:"text,omitempty"`
	Action         string   `json:"action,omitempty"`
	Rule           string   `json:"rule,omitempty"`
	Point          string   `json:"point,omitempty"`
	OperationPhase string   `json:"operationPhase,omitempty"`
	Resource       string   `json:"resource,omitempty"`
	Namespace      string   `json:"namespace,omitempty"`
	Key            string   `json:"key,omitempty"`
	Caller         string   `json:"caller,omitempty"`
	Occurrence     int      `json:"occurrence,omitempty"`
	Error          *string  `json:"error,omitempty"`
	Client         string   `json:"client,omitempty"`
	Watch          int      `json:"watch,omitempty"`
	Revision       int64    `json:"revision,omitempty"`
	Objects        []Object `json:"objects,omitempty"`
	Number         int      `json:"number,omitempty"`
	Cause          int      `json:"cause,omitempty"`

	Asked            int64  `json:"asked,omitempty"`
	Sent             Object `json:"sent,omitzero"`
	DryRun           bool   `json:"dryRun,omitempty"`
	About            Object `json:"about,omitzero"`
	Continue         string `json:"continue,omitempty"`
	InitialEventsEnd bool   `json:"initialEventsEnd,omitempty"`
}

// WriteJSON writes records as JSON, one object per line. The field "type" is the
// event's type in lower case, such as "hook".
func WriteJSON(w io.Writer, recs []Record) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, rec := range recs {
		j, err := toJSON(rec)
		if err != nil {
			return err
		}
		if err := enc.Encode(j); err != nil {
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
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.DisallowUnknownFields()
		var j jsonRecord
		if err := dec.Decode(&j); err != nil {
			return nil, fmt.Errorf("trace: line %d is not a record: %w", n, err)
		}
		rec, err := j.record()
		if err != nil {
			return nil, fmt.Errorf("trace: line %d: %w", n, err)
		}
		recs = append(recs, rec)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("trace: after line %d: %w", n, err)
	}
	return recs, nil
}

func toJSON(rec Record) (jsonRecord, error) {
	j := jsonRecord{Seq: rec.Seq, Time: rec.Time, ElapsedNanos: int64(rec.Elapsed), ControlPlane: rec.ControlPlane, APIServer: rec.Server}
	switch e := rec.Event.(type) {
	case Stage:
		j.Type, j.Name, j.Phase, j.Error = "stage", e.Name, e.Phase, errorText(e.Err)
	case Signal:
		j.Type, j.Name = "signal", e.Name
	case Hook:
		j.Type, j.Kind, j.Name, j.Phase, j.Error = "hook", e.Kind, e.Name, e.Phase, errorText(e.Err)
	case Check:
		j.Type, j.Endpoint, j.Name, j.OK, j.Reason = "check", e.Endpoint, e.Name, e.OK, e.Reason
	case Request:
		j.Type, j.Method, j.URI, j.Verb, j.User, j.UserAgent = "request", e.Method, e.URI, e.Verb, e.User, e.UserAgent
		j.Phase, j.Code, j.Server, j.DurationNanos, j.Error = e.Phase, e.Code, e.Server, int64(e.Duration), errorText(e.Err)
	case Fault:
		j.Type, j.Phase, j.Action, j.Rule, j.Error = "fault", e.Phase, e.Action, e.Rule, errorText(e.Err)
		j.Point, j.OperationPhase, j.Server, j.Verb, j.Resource = e.Point, e.OperationPhase, e.Server, e.Verb, e.Resource
		j.Namespace, j.Name, j.Key, j.Caller, j.Occurrence = e.Namespace, e.Name, e.Key, e.Caller, e.Occurrence
	case Note:
		j.Type, j.Text = "note", e.Text
	case Answer:
		j.Type, j.Client, j.Method, j.URI, j.Code, j.Reason = "answer", e.Client, e.Method, e.URI, e.Code, e.Reason
		j.Revision, j.Objects, j.Error = e.Revision, e.Objects, errorText(e.Err)
		j.Asked, j.DurationNanos, j.Sent, j.DryRun, j.About, j.Continue = e.Asked, int64(e.Took), e.Sent, e.DryRun, e.About, e.Continue
	case WatchEvent:
		j.Type, j.Client, j.URI, j.Watch, j.Verb, j.Reason = "watchevent", e.Client, e.URI, e.Watch, e.Type, e.Reason
		j.Objects, j.Error, j.Asked, j.InitialEventsEnd = []Object{e.Object}, errorText(e.Err), e.Asked, e.InitialEventsEnd
	case Write:
		j.Type, j.Key, j.Revision = "write", e.Key, e.Revision
		j.Verb = writeVerb(e)
	case Turn:
		j.Type, j.Number, j.Cause, j.Point, j.OperationPhase, j.Server = "turn", e.Number, e.Cause, e.Point, e.Phase, e.Server
		j.Verb, j.Resource, j.Namespace, j.Name, j.Key, j.Caller, j.Occurrence = e.Verb, e.Resource, e.Namespace, e.Name, e.Key, e.Caller, e.Occurrence
	default:
		return j, fmt.Errorf("trace: record %d has an event that cannot be written: %T", rec.Seq, rec.Event)
	}
	return j, nil
}

func (j jsonRecord) record() (Record, error) {
	rec := Record{Seq: j.Seq, Time: j.Time, Elapsed: time.Duration(j.ElapsedNanos), ControlPlane: j.ControlPlane, Server: j.APIServer}
	phases, kinds := []Phase{""}, []HookKind{""}
	switch j.Type {
	case "stage":
		phases = []Phase{Start, End}
		rec.Event = Stage{Name: j.Name, Phase: j.Phase, Err: j.err()}
	case "signal":
		rec.Event = Signal{Name: j.Name}
	case "hook":
		phases, kinds = []Phase{Held, Released, Start, End}, []HookKind{PostStart, PreShutdown}
		rec.Event = Hook{Kind: j.Kind, Name: j.Name, Phase: j.Phase, Err: j.err()}
	case "check":
		rec.Event = Check{Endpoint: j.Endpoint, Name: j.Name, OK: j.OK, Reason: j.Reason}
	case "request":
		phases = []Phase{Start, End}
		rec.Event = Request{Method: j.Method, URI: j.URI, Verb: j.Verb, User: j.User, UserAgent: j.UserAgent,
			Phase: j.Phase, Code: j.Code, Server: j.Server, Duration: time.Duration(j.DurationNanos), Err: j.err()}
	case "fault":
		phases = []Phase{Held, Released, Applied}
		rec.Event = Fault{Phase: j.Phase, Action: j.Action, Rule: j.Rule, Point: j.Point, OperationPhase: j.OperationPhase, Server: j.Server, Verb: j.Verb, Resource: j.Resource,
			Namespace: j.Namespace, Name: j.Name, Key: j.Key, Caller: j.Caller, Occurrence: j.Occurrence, Err: j.err()}
	case "note":
		rec.Event = Note{Text: j.Text}
	case "answer":
		rec.Event = Answer{Client: j.Client, Method: j.Method, URI: j.URI, Code: j.Code, Reason: j.Reason, Revision: j.Revision, Objects: j.Objects, Err: j.err(),
			Asked: j.Asked, Took: time.Duration(j.DurationNanos), Sent: j.Sent, DryRun: j.DryRun, About: j.About, Continue: j.Continue}
	case "watchevent":
		rec.Event = WatchEvent{Client: j.Client, URI: j.URI, Watch: j.Watch, Type: j.Verb, Reason: j.Reason, Object: j.object(), Err: j.err(),
			Asked: j.Asked, InitialEventsEnd: j.InitialEventsEnd}
	case "write":
		rec.Event = Write{Key: j.Key, Revision: j.Revision, Created: j.Verb == created, Deleted: j.Verb == deleted}
	case "turn":
		rec.Event = Turn{Number: j.Number, Cause: j.Cause, Point: j.Point, Phase: j.OperationPhase, Server: j.Server, Verb: j.Verb, Resource: j.Resource,
			Namespace: j.Namespace, Name: j.Name, Key: j.Key, Caller: j.Caller, Occurrence: j.Occurrence}
	default:
		return rec, fmt.Errorf("unknown type %q: it was written by another version, or is not a trace", j.Type)
	}
	if !slices.Contains(phases, j.Phase) {
		return rec, fmt.Errorf("a %s cannot have the phase %q; want one of %q", j.Type, j.Phase, phases)
	}
	if !slices.Contains(kinds, j.Kind) {
		return rec, fmt.Errorf("a %s cannot be of kind %q; want one of %q", j.Type, j.Kind, kinds)
	}
	return rec, nil
}

// The kinds of writes, as written to text and JSON.
const (
	created = "create"
	changed = "update"
	deleted = "delete"
)

func writeVerb(e Write) string {
	switch {
	case e.Created:
		return created
	case e.Deleted:
		return deleted
	}
	return changed
}

// object returns the object of a WatchEvent.
func (j jsonRecord) object() Object {
	if len(j.Objects) == 0 {
		return Object{}
	}
	return j.Objects[0]
}

// errorText distinguishes no error (nil) from an error without text.
func errorText(err error) *string {
	if err == nil {
		return nil
	}
	text := err.Error()
	return &text
}

func (j jsonRecord) err() error {
	if j.Error == nil {
		return nil
	}
	return errors.New(*j.Error)
}
