package memnet

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDeadlines(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		assert.NoError(t, c.EnableFullDuplex())
		c.SetReadDeadline(time.Now().Add(time.Second))
		_, err := r.Body.Read(make([]byte, 1))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "body read")
		c.SetWriteDeadline(time.Now().Add(time.Hour))
		c.SetWriteDeadline(time.Now().Add(time.Minute))
		_, err = w.Write(make([]byte, 1<<20))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "write")
	}, func(t *testing.T, tr *Transport) {
		never, stop := io.Pipe()
		defer stop.Close()
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "https://cluster/", never)
		start := time.Now()
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err)
		require.NoError(t, tr.Wait(t.Context()))
		assert.Equal(t, time.Minute+time.Second, time.Since(start), "the deadlines took")
		_, err = io.Copy(io.Discard, resp.Body)
		assert.True(t, err == io.ErrUnexpectedEOF, "client reads %v, want unexpected EOF", err)
	})
}

// A deadline in the past takes effect before the call returns.
func TestPastDeadlines(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		c.SetReadDeadline(time.Now().Add(-time.Second))
		_, err := r.Body.Read(make([]byte, 1))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "body read")
		c.SetWriteDeadline(time.Now().Add(-time.Second))
		_, err = w.Write([]byte("x"))
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "write")
		assert.Error(t, r.Context().Err(), "the handler's context lives on")
	}, func(t *testing.T, tr *Transport) {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "https://cluster/", strings.NewReader("x"))
		_, err := tr.RoundTrip(req)
		assert.True(t, err == io.ErrUnexpectedEOF, "error %v, want unexpected EOF", err)
	})
}

// A deadline that is lifted in time never fires.
func TestLiftedDeadlines(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		c.SetReadDeadline(time.Now().Add(time.Second))
		c.SetWriteDeadline(time.Now().Add(time.Second))
		c.SetReadDeadline(time.Time{})
		c.SetWriteDeadline(time.Time{})
		time.Sleep(time.Minute)
		_, err := io.Copy(w, r.Body)
		assert.NoError(t, err, "echo")
		r.Body.Close()
		_, err = r.Body.Read(make([]byte, 1))
		assert.True(t, err == http.ErrBodyReadAfterClose, "read of a closed body: %v", err)
	}, func(t *testing.T, tr *Transport) {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "https://cluster/", strings.NewReader("hello"))
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		assert.Equal(t, "hello", string(body), "body")
		assert.NoError(t, err, "body")
	})
}

func TestInformationalStatus(t *testing.T) {
	refused := errors.New("enough")
	for name, test := range map[string]struct {
		trace *httptrace.ClientTrace
		want  error
	}{
		"no hooks": {&httptrace.ClientTrace{}, nil},
		"refused":  {&httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { return refused }}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			continued := false
			test.trace.Got100Continue = func() { continued = true }
			bubble(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Link", "x")
				w.WriteHeader(http.StatusContinue)
				w.WriteHeader(http.StatusEarlyHints)
			}, func(t *testing.T, tr *Transport) {
				ctx := httptrace.WithClientTrace(t.Context(), test.trace)
				req, _ := http.NewRequestWithContext(ctx, "GET", "https://cluster/", nil)
				resp, err := tr.RoundTrip(req)
				assert.False(t, !errors.Is(err, test.want) || err == nil && resp.StatusCode != 200, "response %v, %v", resp, err)
				synctest.Wait()
				assert.True(t, continued, "100 Continue was not seen")
			})
		})
	}
}
