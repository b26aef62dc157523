package checkers

import (
	"time"

	"snowglobe.test/envtest/trace"
)

// Object is what is known about an object: its metadata, and a digest of the rest.
type Object = trace.Object

// History is what clients asked and were told. The order of events is a number that
// counts up: an operation came after an event if its Start is at or after the event's
// order. Events need not share numbers, but those that do are concurrent.
type History struct {
	Operations []Operation
	Watches    []Watch
	// Writes are the changes of the store, if the recorder watched it. It may be empty.
	Writes []Write

	// Closed says that no client has changed the objects except by these operations. Only
	// whoever records a history can know that. Without it, a change that no operation
	// explains is an unknown client's.
	Closed bool
	// Complete says that Writes has every change of the store, from the very first to
	// the newest one that it has.
	Complete bool
}

// Operation is a request other than a watch, and its answer.
type Operation struct {
	Session string `json:"session,omitempty"` // the client
	// Server is the API server that answered: empty if there is only one, SomeServer if
	// it is one of several and it is not known which.
	Server string `json:"server,omitempty"`
	Method string `json:"method"`
	URI    string `json:"uri"` // path and query

	Start int64         `json:"start"`             // its place in the order when it was sent
	End   int64         `json:"end,omitempty"`     // when it was answered; 0 if it never was
	At    time.Duration `json:"atNanos,omitempty"` // when it was answered, since the record began
	Took  time.Duration `json:"tookNanos,omitempty"`

	// Sent is what the body contained: the object's metadata, or the preconditions of a
	// deletion.
	Sent   Object `json:"sent,omitzero"`
	DryRun bool   `json:"dryRun,omitempty"`

	Code     int      `json:"code,omitempty"`     // HTTP status; 0 if there was no answer
	Reason   string   `json:"reason,omitempty"`   // the Status's, such as "Conflict"
	Revision int64    `json:"revision,omitempty"` // the list's resourceVersion
	Continue string   `json:"continue,omitempty"` // the list's token for its next page
	Objects  []Object `json:"objects,omitempty"`
	About    Object   `json:"about,omitzero"`  // what a Status is about
	Err      string   `json:"error,omitempty"` // why it broke off
}

// SomeServer is the Server of an answer that may come from any of several.
const SomeServer = "*"

// Watch is one stream of events: a request that was answered with 200.
type Watch struct {
	Session string  `json:"session,omitempty"`
	Server  string  `json:"server,omitempty"` // as in Operation
	URI     string  `json:"uri"`
	Start   int64   `json:"start"`
	End     int64   `json:"end,omitempty"` // 0 if it had not ended
	Err     string  `json:"error,omitempty"`
	Events  []Event `json:"-"`
}

// Event is an event of a watch.
type Event struct {
	Order  int64  `json:"order"`
	Type   string `json:"event"` // "ADDED", "MODIFIED", "DELETED", "BOOKMARK" or "ERROR"
	Object Object `json:"object,omitzero"`
	Reason string `json:"reason,omitempty"` // the Status's, if Type is "ERROR"
	// InitialEventsEnd is the annotation of a bookmark that ends the initial events.
	InitialEventsEnd bool `json:"initialEventsEnd,omitempty"`
}

// Write is a change to a key in the store.
type Write struct {
	Order    int64  `json:"order"` // when it was known, which is after it was done
	Key      string `json:"key"`
	Revision int64  `json:"revision"`
	Created  bool   `json:"created,omitempty"`
	Deleted  bool   `json:"deleted,omitempty"`
}
