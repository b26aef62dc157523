package checkers_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/scenarios/checkers"
)

const snowMap = group + "default" + media + "/snow"

// fullTrace is a full trace as a control plane records it.
func fullTrace(t *testing.T) []trace.Record {
	t.Helper()
	r := trace.NewRecorder("cp", 0)
	server := r.For("apiserver-0")
	made := checkers.Object{Kind: "ConfigMap", Namespace: "default", Name: "snow", UID: "u1", Revision: 5}
	changed := made
	changed.Revision = 6
	r.Record(trace.Hook{Kind: trace.PostStart, Name: "h", Phase: trace.Start})
	r.Record(trace.Write{Key: "/registry/configmaps/default/snow", Revision: 5, Created: true})
	server.Record(trace.Answer{Client: "a", Method: "POST", URI: group + "default" + media, Code: 201, Asked: 1, Took: time.Second, Sent: checkers.Object{Name: "snow"}, Objects: []checkers.Object{made}})
	server.Record(trace.WatchEvent{Client: "b", URI: "/api/v1/configmaps?watch=true&resourceVersion=4", Watch: 1, Asked: 1, Type: "ADDED", Object: made})
	server.Record(trace.Answer{Client: "a", Method: "PUT", URI: snowMap, Asked: 3, Sent: checkers.Object{Name: "snow", Revision: 5}, Err: errors.New("reset")})
	r.Record(trace.Write{Key: "/registry/configmaps/default/snow", Revision: 6})
	server.Record(trace.WatchEvent{Client: "b", URI: "/api/v1/configmaps?watch=true&resourceVersion=4", Watch: 1, Asked: 1, Type: "MODIFIED", Object: changed})
	server.Record(trace.WatchEvent{Client: "b", URI: "/api/v1/configmaps?watch=true&resourceVersion=4", Watch: 1, Asked: 1, Err: errors.New("reset")})
	server.Record(trace.Answer{Client: "c", Method: "GET", URI: snowMap, Code: 200, Asked: 7, Objects: []checkers.Object{changed}})
	return r.Records()
}

// A history of a trace has the order of its records, and comes through a file.
func TestFromTrace(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, trace.WriteJSON(&file, fullTrace(t)))
	recs, err := trace.ReadJSON(&file)
	require.NoError(t, err)
	h, err := checkers.FromTrace(recs)
	require.NoError(t, err)
	assert.True(t, h.Complete)
	assert.False(t, h.Closed)
	require.Len(t, h.Operations, 3)
	op := h.Operations[0]
	assert.EqualValues(t, 1, op.Start)
	assert.EqualValues(t, 3, op.End)
	assert.Equal(t, "apiserver-0", op.Server)
	assert.Equal(t, time.Second, op.Took)
	assert.Equal(t, "reset", h.Operations[1].Err)
	require.Len(t, h.Watches, 1)
	assert.Len(t, h.Watches[0].Events, 2)
	assert.Equal(t, "reset", h.Watches[0].Err)
	assert.EqualValues(t, 8, h.Watches[0].End)
	assert.Len(t, h.Writes, 2)
	report := checkers.Check(t.Context(), h)
	assert.Equal(t, checkers.Holds, report.Verdict(), "%s", report)

	// By the store's word, no client can be told of the first revision any more.
	h.Operations[2].Objects[0].Revision = 5
	report = checkers.Check(t.Context(), h)
	assert.Equal(t, checkers.Broken, report.Verdict())
	assert.Contains(t, report.String(), "by the changes that the store has had")
	h.Writes = nil
	h.Complete = false
	h.Watches = nil
	report = checkers.Check(t.Context(), h)
	assert.Equal(t, checkers.Holds, report.Verdict(), "without it, the update may not have been done: %s", report)
}

// Traces that can't be one history are refused, or known not to be complete.
func TestFromTraceOfParts(t *testing.T) {
	recs := fullTrace(t)
	h, err := checkers.FromTrace(recs[1:])
	require.NoError(t, err)
	assert.False(t, h.Complete, "the first record is missing")
	assert.Len(t, h.Watches, 1)
	h, err = checkers.FromTrace(recs[4:])
	require.NoError(t, err)
	assert.Empty(t, h.Watches, "it may have told something before")
	_, err = checkers.FromTrace(append(recs[:4:4], recs[5:]...))
	assert.ErrorContains(t, err, "record 6 comes after record 4")
	h, err = checkers.FromTrace(nil)
	require.NoError(t, err)
	assert.Equal(t, checkers.Unknown, checkers.Check(t.Context(), h).Verdict(), "there is nothing to judge")

	other := recs[4]
	other.ControlPlane = "other"
	_, err = checkers.FromTrace(append(recs[:4:4], other))
	assert.ErrorContains(t, err, `the control planes "cp" and "other"`)
	_, err = checkers.FromTrace([]trace.Record{recs[1], recs[0]})
	assert.ErrorContains(t, err, "record 1 comes after record 2")
}

// Which of several servers has answered must be known, or reads of it are not compared.
func TestFromTraceOfServers(t *testing.T) {
	recs := []trace.Record{
		{Seq: 1, Server: "apiserver-0", Event: trace.Note{}}, {Seq: 2, Server: "apiserver-1", Event: trace.Note{}},
		{Seq: 3, Event: trace.Answer{Client: "a", Method: "GET", URI: "/api/v1/configmaps?resourceVersion=0", Code: 200, Revision: 7, Asked: 2}},
		{Seq: 4, Event: trace.Answer{Client: "a", Method: "GET", URI: "/api/v1/configmaps?resourceVersion=0", Code: 200, Revision: 6, Asked: 3}},
	}
	h, err := checkers.FromTrace(recs)
	require.NoError(t, err)
	assert.Equal(t, checkers.SomeServer, h.Operations[0].Server)
	assert.NotEqual(t, checkers.Broken, checkers.Check(t.Context(), h).Verdict())
	recs[2].Server, recs[3].Server = "apiserver-1", "apiserver-1"
	h, err = checkers.FromTrace(recs)
	require.NoError(t, err)
	assert.Equal(t, checkers.Broken, checkers.Check(t.Context(), h).Verdict())
}

// Behind an event that could not be read, what is missing is not known.
func TestUnreadableEvent(t *testing.T) {
	recs := fullTrace(t)
	e := recs[3].Event.(trace.WatchEvent)
	e.Type = "unreadable"
	recs[3].Event = e
	h, err := checkers.FromTrace(recs)
	require.NoError(t, err)
	assert.Empty(t, h.Watches[0].Events)
	assert.Equal(t, checkers.Holds, checkers.Check(t.Context(), h).Verdict())
}
