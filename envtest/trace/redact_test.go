package trace_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/trace"
)

// TestCredentials records a token wherever an event has a text that others have written.
func TestCredentials(t *testing.T) {
	const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyb2JvdCJ9.c2lnbmF0dXJl"
	err := errors.New("no user has " + token)
	events := []trace.Event{
		trace.Stage{Err: err}, trace.Hook{Err: err}, trace.Check{Reason: token}, trace.Note{Text: token},
		trace.Request{URI: token, UserAgent: token, Err: err}, trace.Answer{URI: token, Err: err}, trace.WatchEvent{URI: token, Err: err},
		trace.Fault{Rule: token, Key: token, Err: err}, trace.Turn{Key: token},
	}
	recorder := trace.NewRecorder("a", 0)
	for _, event := range events {
		recorder.Record(event)
	}
	records := recorder.Records()
	for i, record := range records {
		assert.IsType(t, events[i], record.Event)
		if got := reflect.ValueOf(record.Event).FieldByName("Err"); got.IsValid() {
			assert.ErrorIs(t, got.Interface().(error), err)
		}
	}
	var text bytes.Buffer
	require.NoError(t, trace.WriteJSON(&text, records))
	assert.NotContains(t, text.String(), token)
	assert.Contains(t, text.String(), "[token ")
}
