package trace

import (
	"fmt"
	"strings"
	"time"
)

// Object is an object as a client saw or sent it. Objects can be compared with ==.
type Object struct {
	Kind      string `json:"kind,omitempty"` // such as "ConfigMap"
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
	Revision  int64  `json:"revision,omitempty"` // its resourceVersion
	// Labels are sorted: "app=snow,tier=ice".
	Labels string `json:"labels,omitempty"`
	// Finalizers are in their order: "example.com/a,example.com/b".
	Finalizers string `json:"finalizers,omitempty"`
	Deleting   bool   `json:"deleting,omitempty"` // it has a deletionTimestamp
	// Digest is a hash of its content, without what differs from run to run.
	Digest string `json:"digest,omitempty"`
}

// Answer is the response that a client got to a request other than a watch.
type Answer struct {
	Client   string   `json:"client"` // the user
	Method   string   `json:"method,omitempty"`
	URI      string   `json:"uri,omitempty"`      // path and query
	Code     int      `json:"code,omitempty"`     // HTTP status; 0 if the request broke
	Reason   string   `json:"reason,omitempty"`   // the Status's, such as "Conflict"
	Revision int64    `json:"revision,omitempty"` // the list's resourceVersion
	Objects  []Object `json:"objects,omitempty"`
	Err      error    `json:"-"` // why the request broke off, if it did

	// Asked is the Seq of the last record before the request was sent, 0 if there was
	// none. If it is at least the Seq of another request's Answer, this request was sent
	// after that answer.
	Asked int64         `json:"asked,omitempty"`
	Took  time.Duration `json:"durationNanos,omitempty"`
	// Sent is what the request's body says: an object's metadata, or the preconditions
	// of a deletion. It is empty if there was no body, or one that could not be read.
	Sent   Object `json:"sent,omitzero"`
	DryRun bool   `json:"dryRun,omitempty"`
	// About is what a Status is about, by its details. Kind is the resource.
	About    Object `json:"about,omitzero"`
	Continue string `json:"continue,omitempty"` // the list's token for its next page; empty on the last
}

// WatchEvent is an event that a client's watch received; with an empty Type, its end.
type WatchEvent struct {
	Client string `json:"client"`
	URI    string `json:"uri,omitempty"`
	Watch  int    `json:"watch,omitempty"`  // 1 for the client's first watch of that path
	Type   string `json:"verb,omitempty"`   // such as "ADDED"
	Reason string `json:"reason,omitempty"` // the Status's, if Type is "ERROR"
	Object Object `json:"object,omitzero"`
	Err    error  `json:"-"` // why the watch ended, if it broke

	Asked            int64 `json:"asked,omitempty"`            // that of the watch's request, as in Answer
	InitialEventsEnd bool  `json:"initialEventsEnd,omitempty"` // a bookmark says that the initial events end with it
}

// Write is a change of a key in the store.
type Write struct {
	Key      string `json:"key"`
	Revision int64  `json:"revision,omitempty"`
	Created  bool   `json:"created,omitempty"`
	Deleted  bool   `json:"deleted,omitempty"`
}

// Turn is an operation that a scheduler has let continue.
type Turn struct {
	Number     int    `json:"number"`
	Cause      int    `json:"cause,omitempty"` // the turn that led to the operation; 0 if a timer did
	Point      string `json:"point,omitempty"`
	Phase      string `json:"operationPhase,omitempty"` // the operation's, such as "after"; empty at its beginning
	Server     string `json:"server,omitempty"`
	Verb       string `json:"verb,omitempty"`
	Resource   string `json:"resource,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name,omitempty"`
	Key        string `json:"key,omitempty"`
	Caller     string `json:"caller,omitempty"`
	Occurrence int    `json:"occurrence,omitempty"`
}

// Verb is create, update or delete.
func (e Write) Verb() string {
	switch {
	case e.Created:
		return "create"
	case e.Deleted:
		return "delete"
	}
	return "update"
}

func (e Answer) String() string     { return textOf(e) }
func (e WatchEvent) String() string { return textOf(e) }
func (e Write) String() string      { return textOf(e) }
func (e Turn) String() string       { return textOf(e) }

func (e Answer) line() line {
	l := line{kind: "answer", subject: e.Method + " " + e.URI, state: fmt.Sprint(e.Code), tone: answered(e.Code, e.Err)}
	if e.Err != nil {
		l.state = "broken"
	}
	objects := ""
	if len(e.Objects) == 1 {
		objects = e.Objects[0].place()
	} else if len(e.Objects) > 1 {
		objects = fmt.Sprintf("%d objects", len(e.Objects))
	}
	l.detail = joined("  ", e.Client, e.Reason, objects, message(e.Err))
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
	l := line{kind: "watch", subject: e.URI, state: strings.ToLower(e.Type), tone: Good}
	switch {
	case e.Err != nil:
		l.state, l.tone = "broken", Bad
	case e.Type == "":
		l.state, l.tone = "end", Waiting
	case e.Type == "ERROR":
		l.tone = Bad
	}
	l.detail = joined("  ", fmt.Sprintf("%s #%d", e.Client, e.Watch), e.Reason, e.Object.place(), message(e.Err))
	return l
}

func (e Write) line() line {
	return line{kind: "write", subject: e.Key, state: e.Verb(), detail: fmt.Sprintf("revision %d", e.Revision)}
}

func (e Turn) line() line {
	cause := "time"
	if e.Cause > 0 {
		cause = fmt.Sprint(e.Cause)
	}
	return line{
		kind:    "turn",
		subject: joined(" ", e.Point, e.Phase, e.Verb, e.Resource, joined("/", e.Namespace, e.Name)),
		state:   fmt.Sprint(e.Number),
		detail:  joined("  ", e.Server, e.Caller, fmt.Sprintf("#%d", e.Occurrence), "by "+cause),
	}
}
