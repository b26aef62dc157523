// Package events owns a recorder of events for tests: what a controller records with
// client-go's record.EventRecorder or events.EventRecorder is kept in memory, to be read or
// waited for. Unlike the FakeRecorders of client-go it never blocks whoever records, and it
// keeps an event's parts apart. It never drops, aggregates or refuses an event, as recorders
// that write to an API server do.
package events
