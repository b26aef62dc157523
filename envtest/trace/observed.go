package trace

import (
	"fmt"
	"strings"
)

// Object is an object as a client saw it.
type Object struct {
	Kind      string `json:"kind,omitempty"` // such as "ConfigMap"
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Revision  int64  `json:"revision,omitempty"` // its resourceVersion
	// Digest is a hash of its content, without what differs from run to run.
	Digest string `json:"digest,omitempty"`
}

// Answer is the response that a client got to a request other than a watch.
type Answer struct {
	Client   string // the user
	Method   string
	URI      string // path and query
	Code     int    // HTTP status; 0 if the request broke
	Reason   string // the Status's, such as "Conflict"
	Revision int64  // the list's resourceVersion
	Objects  []Object
	Err      error // why the request broke off, if it did
}

// WatchEvent is an event that a client's watch received. An empty Type means the
// end of the watch.
type WatchEvent struct {
	Client string
	URI    string
	Watch  int    // 1 for the client's first watch of that path
	Type   string // such as "ADDED"
	Reason string // the Status's, if Type is "ERROR"
	Object Object
	Err    error // why the watch ended, if it broke
}

// Write is a change of a key in the store.
type Write struct {
	Key      string
	Revision int64
	Created  bool
	Deleted  bool
}

// Turn is an operation that a scheduler has let continue.
type Turn struct {
	Number     int
	Cause      int // the turn that led to the operation; 0 if a timer did
	Point      string
	Phase      string // the operation's, such as "after"; empty at its beginning
	Server     string
	Verb       string
	Resource   string
	Namespace  string
	Name       string
	Key        string
	Caller     string
	Occurrence int
}

func (Answer) isEvent()     {}
func (WatchEvent) isEvent() {}
func (Write) isEvent()      {}
func (Turn) isEvent()       {}

func (e Answer) String() string     { return e.line().String() }
func (e WatchEvent) String() string { return e.line().String() }
func (e Write) String() string      { return e.line().String() }
func (e Turn) String() string       { return e.line().String() }

func (e Answer) line() line {
	l := line{kind: "answer", subject: oneLine(e.Method + " " + e.URI), state: fmt.Sprint(e.Code), tone: good}
	switch {
	case e.Err != nil:
		l.state, l.tone = "broken", bad
	case e.Code >= 500 || e.Code == 429:
		l.tone = bad
	case e.Code >= 400:
		l.tone = waiting
	}
	words := []string{e.Client, e.Reason}
	if len(e.Objects) == 1 {
		words = append(words, e.Objects[0].place())
	} else if len(e.Objects) > 1 {
		words = append(words, fmt.Sprintf("%d objects", len(e.Objects)))
	}
	if e.Err != nil {
		words = append(words, e.Err.Error())
	}
	l.detail = oneLine(joined("  ", words...))
	return l
}

// place says for people which object this is.
func (o Object) place() string {
	text := joined(" ", o.Kind, joined("/", o.Namespace, o.Name))
	if o.Revision > 0 {
		text += fmt.Sprintf(" at %d", o.Revision)
	}
	return text
}

func (e WatchEvent) line() line {
	l := line{kind: "watch", subject: oneLine(e.URI), state: oneLine(strings.ToLower(e.Type)), tone: good}
	switch {
	case e.Err != nil:
		l.state, l.tone = "broken", bad
	case e.Type == "":
		l.state, l.tone = "end", waiting
	case e.Type == "ERROR":
		l.tone = bad
	}
	words := []string{fmt.Sprintf("%s #%d", e.Client, e.Watch), e.Reason, e.Object.place()}
	if e.Err != nil {
		words = append(words, e.Err.Error())
	}
	l.detail = oneLine(joined("  ", words...))
	return l
}

func (e Write) line() line {
	return line{kind: "write", subject: oneLine(e.Key), state: writeVerb(e), detail: fmt.Sprintf("revision %d", e.Revision)}
}

func (e Turn) line() line {
	l := line{kind: "turn", subject: oneLine(joined(" ", e.Point, e.Phase, e.Verb, e.Resource, joined("/", e.Namespace, e.Name))), state: fmt.Sprint(e.Number)}
	cause := "time"
	if e.Cause > 0 {
		cause = fmt.Sprint(e.Cause)
	}
	l.detail = oneLine(joined("  ", e.Server, e.Caller, fmt.Sprintf("#%d", e.Occurrence), "by "+cause))
	return l
}
