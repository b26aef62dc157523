package inject

import (
	"context"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/envtest/trace"
)

// outcome is what comes of a request.
type outcome struct {
	handled   []string // the bodies that the handler has read
	cancelled bool     // the last of its contexts had ended
	code      int
	body      string
	err       error
	waited    time.Duration
	record    trace.Request
}

// outcomeOf posts "snow" to a handler that answers "fell" in two parts.
func outcomeOf(t *testing.T, rules ...string) outcome {
	var o outcome
	api := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		assert.NoError(t, err)
		o.handled = append(o.handled, string(body))
		o.cancelled = req.Context().Err() != nil
		w.Header().Set("X-Handler", "was here")
		w.WriteHeader(http.StatusCreated)
		for _, part := range []string{"fe", "ll"} {
			_, _ = io.WriteString(w, part)
			w.(http.Flusher).Flush()
		}
	})
	recorder := trace.NewRecorder("test", 0)
	requests := NewRequests(recorder, injectorFor(t, rules...))
	transport := &memnet.Transport{Handler: requests.Outermost(authenticated(requests.HandlerChain(plainChain)(api, configForTest())))}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://cluster/api/v1/namespaces/default/configmaps", strings.NewReader("snow"))
	require.NoError(t, err)
	began := time.Now()
	response, err := transport.RoundTrip(req)
	if o.err = err; err == nil {
		var body []byte
		body, o.err = io.ReadAll(response.Body)
		o.body = string(body)
		o.code = response.StatusCode
		_ = response.Body.Close()
		if o.code != http.StatusCreated {
			assert.Empty(t, response.Header.Get("X-Handler"))
		}
	}
	o.waited = time.Since(began)
	require.NoError(t, transport.Close())
	require.NoError(t, transport.Wait(t.Context()))
	assert.Empty(t, requests.InFlight(nil))
	records := recorder.Records()
	require.Len(t, records, 1)
	o.record = records[0].Event.(trace.Request)
	return o
}

// TestServe is what each action does to a request, in each phase of its life.
func TestServe(t *testing.T) {
	for _, test := range []struct {
		rule    string
		handled int
		code    int
		body    string // that is in the response
		err     error
		broken  string // what the trace says
	}{
		{rule: "", handled: 1, code: 201, body: "fell"},
		{rule: "delay http/create by=3s", handled: 1, code: 201, body: "fell"},
		{rule: "fail http/create with=503", code: 503, body: "injected"},
		{rule: "fail http/create with=reset", err: syscall.ECONNRESET, broken: "connection reset"},
		{rule: "lose-reply http/create", handled: 1, err: syscall.ECONNRESET, broken: "connection reset"},
		{rule: "lose-reply http/create with=504", handled: 1, code: 504, body: "injected"},
		{rule: "duplicate http/create", handled: 2, code: 201, body: "fell"},
		{rule: "drop http/create", err: context.DeadlineExceeded, broken: "dropped"},
		{rule: "cancel http/create", handled: 1, code: 201, body: "fell"},
		{rule: "crash http/create", err: io.ErrUnexpectedEOF, broken: "EOF"},
		{rule: "fail http/create phase=after with=429 retry-after=2s", handled: 1, code: 429, body: "injected"},
		{rule: "fail http/create phase=after with=eof", handled: 1, err: io.EOF, broken: "EOF"},
		{rule: "drop http/create phase=after", handled: 1, err: context.DeadlineExceeded, broken: "dropped"},
		{rule: "cancel http/create phase=after", handled: 1, code: 201},
		{rule: "crash http/create phase=after", handled: 1, err: io.ErrUnexpectedEOF, broken: "EOF"},
		{rule: "fail http/create phase=stream with=reset", handled: 1, code: 201, body: "fe", err: syscall.ECONNRESET, broken: "connection reset"},
		{rule: "drop http/create phase=stream", handled: 1, code: 201, body: "fe"},
		{rule: "cancel http/create phase=stream", handled: 1, code: 201, body: "fe"},
		{rule: "crash http/create phase=stream", handled: 1, code: 201, body: "fe", err: io.ErrUnexpectedEOF, broken: "EOF"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var rules []string
				if test.rule != "" {
					rules = append(rules, test.rule)
				}
				o := outcomeOf(t, rules...)
				assert.Len(t, o.handled, test.handled)
				for _, body := range o.handled {
					assert.Equal(t, "snow", body)
				}
				assert.Equal(t, test.rule == "cancel http/create", o.cancelled)
				assert.Equal(t, test.code, o.code)
				assert.Contains(t, o.body, test.body)
				if test.err == nil {
					assert.NoError(t, o.err)
				} else {
					assert.ErrorIs(t, o.err, test.err)
				}
				if test.broken == "" {
					assert.NoError(t, o.record.Err)
				} else {
					assert.ErrorContains(t, o.record.Err, test.broken)
				}
				assert.Equal(t, "jane", o.record.User)
				assert.Equal(t, ServerAggregator, o.record.Server)
			})
		})
	}
}
