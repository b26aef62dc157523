package checkers

import (
	"cmp"
	"fmt"
	"slices"

	"snowglobe.test/envtest/trace"
)

// FromTrace makes a history from a full trace (envtest.WithFullTrace), in the order of
// its records. It is Complete if the trace has all records from the first on, including
// the changes of the store. It is never Closed: an API server changes objects by itself.
//
// Records from several control planes have no common order, and are an error.
func FromTrace(recs []trace.Record) (*History, error) {
	h := &History{}
	servers := map[string]bool{}
	for _, rec := range recs {
		if rec.ControlPlane != recs[0].ControlPlane {
			return nil, fmt.Errorf("history of a trace: it has records of the control planes %q and %q, whose order is not known: take those of one",
				recs[0].ControlPlane, rec.ControlPlane)
		}
		if rec.Server != "" {
			servers[rec.Server] = true
		}
	}
	whole := len(recs) > 0 && recs[0].Seq == 1
	first := int64(0)
	streams := map[streamName]int{}
	for i, rec := range recs {
		switch {
		case i == 0:
			first = rec.Seq
		case rec.Seq != recs[i-1].Seq+1:
			return nil, fmt.Errorf("history of a trace: record %d comes after record %d: give all records, in their order", rec.Seq, recs[i-1].Seq)
		}
		server := rec.Server
		if server == "" && len(servers) > 1 {
			server = SomeServer
		}
		switch e := rec.Event.(type) {
		case trace.Answer:
			h.Operations = append(h.Operations, operationOf(rec, e, server))
		case trace.WatchEvent:
			if e.Asked >= first-1 {
				h.addEvent(streams, rec.Seq, e, server)
			}
		case trace.Write:
			h.Writes = append(h.Writes, Write{Order: rec.Seq, Key: e.Key, Revision: e.Revision, Created: e.Created, Deleted: e.Deleted})
		}
	}
	h.Complete = whole && len(h.Writes) > 0
	slices.SortStableFunc(h.Writes, func(a, b Write) int { return cmp.Compare(a.Revision, b.Revision) })
	if err := h.validate(); err != nil {
		return nil, fmt.Errorf("history of a trace: %w", err)
	}
	return h, nil
}

// operationOf returns the operation of an answer.
func operationOf(rec trace.Record, a trace.Answer, server string) Operation {
	op := Operation{
		Session: a.Client, Server: server, Method: a.Method, URI: a.URI, Start: a.Asked, End: rec.Seq, At: rec.Elapsed, Took: a.Took,
		Sent: a.Sent, DryRun: a.DryRun, Code: a.Code, Reason: a.Reason, Revision: a.Revision, Continue: a.Continue, Objects: a.Objects, About: a.About,
	}
	if a.Err != nil {
		op.Err = cmp.Or(a.Err.Error(), "it broke off")
	}
	return op
}

// streamName tells the watches of a trace apart.
type streamName struct {
	client, uri string
	watch       int
}

// addEvent adds an event to its watch, or its end.
func (h *History) addEvent(streams map[streamName]int, seq int64, e trace.WatchEvent, server string) {
	name := streamName{e.Client, e.URI, e.Watch}
	i, ok := streams[name]
	if !ok {
		i = len(h.Watches)
		streams[name] = i
		h.Watches = append(h.Watches, Watch{Session: e.Client, Server: server, URI: e.URI, Start: e.Asked})
	}
	w := &h.Watches[i]
	switch e.Type {
	case eventAdded, eventModified, eventDeleted, eventBookmark, eventError:
		if w.End == 0 {
			w.Events = append(w.Events, Event{Order: seq, Type: e.Type, Object: e.Object, Reason: e.Reason, InitialEventsEnd: e.InitialEventsEnd})
		}
		return
	case "":
		w.End = seq
		if e.Err != nil {
			w.Err = cmp.Or(e.Err.Error(), "it broke off")
		}
	default: // what comes after it says nothing of what is missing
		w.End, w.Err = cmp.Or(w.End, seq), "an event could not be read"
	}
}
