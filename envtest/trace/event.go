package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Event is something that happened. The set is closed: Stage, Signal, Hook,
// Check, Request, Fault and Note, and in a full trace also Answer, WatchEvent,
// Write and Turn. All are values, not pointers.
type Event interface {
	// String returns the event as one line of text for people.
	String() string
	// line returns the event in the columns of the timeline.
	line() line
}

// Phase says how far a stage, a hook, a request or a fault has got.
type Phase string

// The phases. Each event type documents which of them it can have.
const (
	Start    Phase = "start"
	End      Phase = "end"
	Held     Phase = "held"
	Released Phase = "released"
	Applied  Phase = "applied"
)

// HookKind tells the two kinds of lifecycle hooks apart.
type HookKind string

// The kinds of hooks.
const (
	PostStart   HookKind = "post-start"
	PreShutdown HookKind = "pre-shutdown"
)

// Stage is a step in the chain's assembly. Phases: Start, End (failed if Err is set).
type Stage struct {
	Name  string `json:"name"` // such as "generic" or "aggregator"
	Phase Phase  `json:"phase,omitempty"`
	Err   error  `json:"-"`
}

// Signal is a lifecycle signal that fired.
type Signal struct {
	Name string `json:"name"` // upstream's, such as "HasBeenReady"
}

// Hook is a lifecycle hook. Phases: Held, Released, Start, End (failed if Err is set).
type Hook struct {
	Kind  HookKind `json:"kind,omitempty"`
	Name  string   `json:"name"` // upstream's, such as "rbac/bootstrap-roles"
	Phase Phase    `json:"phase,omitempty"`
	Err   error    `json:"-"`
}

// Check is a health check whose verdict changed.
type Check struct {
	Endpoint string `json:"endpoint"`       // "healthz", "livez" or "readyz"
	Name     string `json:"name,omitempty"` // upstream's, such as "poststarthook/crd-informer-synced"
	OK       bool   `json:"ok,omitempty"`
	Reason   string `json:"reason,omitempty"` // why it fails; empty if OK
}

// AdminUser is the user of a configuration of envtest that names no other: a member of the group
// system:masters.
const AdminUser = "snowglobe-admin"

// Request is a request to the API server. Phases: Start if it is long-running, End.
type Request struct {
	Method    string        `json:"method"`         // such as "GET"
	URI       string        `json:"uri,omitempty"`  // path and query
	Verb      string        `json:"verb,omitempty"` // upstream's, such as "list" or "watch"
	User      string        `json:"user,omitempty"`
	UserAgent string        `json:"userAgent,omitempty"`
	Phase     Phase         `json:"phase,omitempty"`
	Code      int           `json:"code,omitempty"`          // HTTP status; 0 at Start, or if none was sent
	Server    string        `json:"server,omitempty"`        // which server of the chain answered
	Duration  time.Duration `json:"durationNanos,omitempty"` // at End
	Err       error         `json:"-"`                       // why the request broke off, if it did
}

// Fault is an operation that a rule has acted on. Its phases are Held and Released
// if the rule decides when it goes on, and Applied if it decides the outcome.
type Fault struct {
	Phase  Phase  `json:"phase"`
	Action string `json:"action,omitempty"` // such as "hold" or "lose-reply"
	Rule   string `json:"rule,omitempty"`   // the rule as text

	// The operation. Fields that do not apply to it are empty.
	Point          string `json:"point,omitempty"`          // such as "store/put"
	OperationPhase string `json:"operationPhase,omitempty"` // such as "after"; empty at its beginning
	Server         string `json:"server,omitempty"`
	Verb           string `json:"verb,omitempty"`
	Resource       string `json:"resource,omitempty"` // such as "configmaps" or "deployments.apps"
	Namespace      string `json:"namespace,omitempty"`
	Name           string `json:"name,omitempty"`
	Key            string `json:"key,omitempty"` // in the store, or the path of a request
	Caller         string `json:"caller,omitempty"`
	Occurrence     int    `json:"occurrence,omitempty"` // 1 for the first with the same identity

	Err error `json:"-"` // why the operation ended while it was held
}

// Note is a line that a script or a test has added to the record.
type Note struct {
	Text string `json:"text"`
}

func (e Stage) String() string   { return textOf(e) }
func (e Signal) String() string  { return textOf(e) }
func (e Hook) String() string    { return textOf(e) }
func (e Check) String() string   { return textOf(e) }
func (e Request) String() string { return textOf(e) }
func (e Fault) String() string   { return textOf(e) }
func (e Note) String() string    { return textOf(e) }

// Tone says whether an event is good or bad news to somebody who wants every operation to
// succeed. It decides the event's colour.
type Tone int

// The tones.
const (
	Plain   Tone = iota
	Good         // it went as it should
	Bad          // it failed, or was made to
	Waiting      // it waits, or was refused for a reason
	Strong       // it marks a step in the run: a note or a lifecycle signal
)

// ToneOf returns the tone of an event.
func ToneOf(e Event) Tone { return e.line().tone }

// line is an event in the columns of the timeline.
type line struct {
	kind, subject, state, detail string
	tone                         Tone
}

// lineOf returns the columns of an event, each of which is one line.
func lineOf(e Event) line {
	l := e.line()
	l.kind, l.subject, l.state, l.detail = oneLine(l.kind), oneLine(l.subject), oneLine(l.state), oneLine(l.detail)
	return l
}

func textOf(e Event) string {
	l := lineOf(e)
	return joined(" ", l.kind, l.subject, l.state, l.detail)
}

func (e Stage) line() line {
	l := line{kind: "stage", subject: e.Name, state: string(e.Phase)}
	return l.ended(e.Phase, e.Err)
}

func (e Signal) line() line { return line{kind: "signal", subject: e.Name, tone: Strong} }

func (e Hook) line() line {
	l := line{kind: "hook", subject: e.Name, state: string(e.Phase), detail: string(e.Kind)}
	return l.ended(e.Phase, e.Err)
}

// ended gives a line the look of its phase, or of its error.
func (l line) ended(p Phase, err error) line {
	switch {
	case err != nil:
		l.state, l.tone = "failed", Bad
		l.detail = joined("  ", l.detail, err.Error())
	case p == End:
		l.tone = Good
	case p == Held:
		l.tone = Waiting
	}
	return l
}

func (e Check) line() line {
	if !e.OK {
		return line{kind: e.Endpoint, subject: e.Name, state: "failing", detail: e.Reason, tone: Bad}
	}
	return line{kind: e.Endpoint, subject: e.Name, state: "ok", tone: Good}
}

func (e Request) line() line {
	l := line{kind: "request", subject: e.Method + " " + e.URI, state: string(e.Phase), tone: answered(e.Code, e.Err)}
	if e.Code != 0 {
		l.state = fmt.Sprint(e.Code)
	} else if e.Err != nil {
		l.state = "broken"
	}
	duration := ""
	if e.Phase == End {
		duration = took(e.Duration)
	}
	l.detail = joined("  ", e.Server, e.User, duration, message(e.Err))
	return l
}

// answered is the tone of a request with that HTTP status, or none yet.
func answered(code int, err error) Tone {
	switch {
	case code >= 500 || code == 429 || err != nil:
		return Bad
	case code >= 400:
		return Waiting
	case code >= 200:
		return Good
	}
	return Plain
}

func (e Fault) line() line {
	subject := joined(" ", e.Point, e.OperationPhase, e.Verb, e.Resource, joined("/", e.Namespace, e.Name))
	if e.Name == "" && e.Resource == "" {
		subject = joined(" ", subject, e.Key)
	}
	l := line{kind: "fault", subject: subject, state: string(e.Phase), tone: Waiting}
	switch {
	case e.Err != nil:
		l.tone = Bad
	case e.Phase == Applied:
		l.state, l.tone = e.Action, Bad
	case e.Phase == Released:
		l.tone = Good
	}
	l.detail = joined("  ", e.Server, e.Caller, fmt.Sprintf("#%d", e.Occurrence), "by: "+e.Rule, message(e.Err))
	return l
}

func (e Note) line() line { return line{kind: "note", subject: e.Text, tone: Strong} }

// message is the text of an error, "" if there is none.
func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// joined is strings.Join without the empty words.
func joined(separator string, words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), separator)
}

// oneLine replaces control characters: outside text must not upset layout or terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return '?'
		}
		return r
	}, strings.TrimSpace(s))
}

// took formats a duration for people; "" if it is 0, as it often is in virtual time.
func took(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	default:
		return d.Round(time.Millisecond).String()
	}
}
