package checkers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/scenarios/checkers"
)

// counter is an API server with one object, whose updates take a second.
type counter struct {
	mu       sync.Mutex
	revision int64
	stale    bool // it answers reads with the revision before
}

// RoundTrip implements http.RoundTripper.
func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == "PUT" {
		select {
		case <-time.After(time.Second):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	revision := c.revision
	if req.Method == "PUT" {
		c.revision++
		revision = c.revision
	} else if c.stale {
		revision--
	}
	body := fmt.Sprintf(`{"kind":"ConfigMap","metadata":{"namespace":"default","name":"snow","uid":"u1","resourceVersion":"%d"}}`, revision)
	if req.URL.Query().Has("watch") {
		body = fmt.Sprintf("{\"type\":\"MODIFIED\",\"object\":%s}\n", body)
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// send sends a request and reads the answer.
func send(ctx context.Context, transport http.RoundTripper, method, uri, body string) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://cluster.test"+uri, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	response, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return err
}

// record lets two clients change and read an object at once, in virtual time.
func record(t *testing.T, server *counter) *checkers.History {
	t.Helper()
	var recorder checkers.Recorder
	var all sync.WaitGroup
	for _, transport := range []http.RoundTripper{recorder.Wrap(server), recorder.Session("b")(server)} {
		all.Go(func() {
			for range 5 {
				assert.NoError(t, send(t.Context(), transport, "PUT", snowMap, `{"metadata":{"name":"snow"}}`))
				assert.NoError(t, send(t.Context(), transport, "GET", snowMap, ""))
			}
		})
	}
	all.Wait()
	assert.NoError(t, send(t.Context(), recorder.Session("b")(server), "GET", group+"default"+media+"?watch=true&resourceVersion=14", ""))
	h, err := recorder.History()
	require.NoError(t, err)
	return h
}

// TestRecorder records what several clients are told at once, and a lie is found.
func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := record(t, &counter{revision: 5})
		require.Len(t, h.Operations, 20)
		require.Len(t, h.Watches, 1)
		sessions := map[string]int{}
		for _, op := range h.Operations {
			sessions[op.Session]++
			assert.Equal(t, "cluster.test", op.Server)
		}
		assert.Equal(t, map[string]int{"client-1": 10, "b": 10}, sessions)
		assert.Equal(t, "b", h.Watches[0].Session)
		h.Closed = true
		report := checkers.Check(t.Context(), h)
		assert.Equal(t, checkers.Holds, report.Verdict(), "%s", report)

		report = checkers.Check(t.Context(), record(t, &counter{revision: 5, stale: true}))
		assert.Equal(t, checkers.Broken, report.Verdict())
		assert.Equal(t, "linearizability", report.Findings()[0].Check)
	})
}

// What is under way may have been done.
func TestRecorderPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recorder checkers.Recorder
		transport := recorder.Wrap(&counter{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- send(ctx, transport, "PUT", snowMap, `{"metadata":{"resourceVersion":"7"}}`) }()
		synctest.Wait()
		h, err := recorder.History()
		require.NoError(t, err)
		require.Len(t, h.Operations, 1)
		assert.Equal(t, checkers.Operation{Session: "client-1", Method: "PUT", URI: snowMap, Sent: h.Operations[0].Sent}, h.Operations[0])
		assert.EqualValues(t, 7, h.Operations[0].Sent.Revision)
		cancel()
		require.Error(t, <-done)
		h, err = recorder.History()
		require.NoError(t, err)
		require.Len(t, h.Operations, 1)
		assert.NotEmpty(t, h.Operations[0].Err)
	})
}
