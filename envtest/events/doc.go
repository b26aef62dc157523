// Package events provides an event recorder for tests: what a controller records with
// client-go's record.EventRecorder or events.EventRecorder is kept in memory, to be read or
// waited for. Unlike client-go's FakeRecorders, it never blocks the caller, and it keeps the
// parts of an event separate. Unlike recorders that write to an API server, it never drops,
// aggregates or rejects an event.
package events
