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
)

func TestDeadlines(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if err := c.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := r.Body.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("body read: %v, want a deadline error", err)
		}
		c.SetWriteDeadline(time.Now().Add(time.Hour))
		c.SetWriteDeadline(time.Now().Add(time.Minute))
		if _, err := w.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %v, want a deadline error", err)
		}
	}, func(t *testing.T, tr *Transport) {
		never, stop := io.Pipe()
		defer stop.Close()
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "https://cluster/", never)
		start := time.Now()
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != time.Minute+time.Second {
			t.Errorf("the deadlines took %v, want 1m1s", took)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != io.ErrUnexpectedEOF {
			t.Errorf("client reads %v, want unexpected EOF", err)
		}
	})
}

// A deadline in the past takes effect before the call returns.
func TestPastDeadlines(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		c.SetReadDeadline(time.Now().Add(-time.Second))
		if _, err := r.Body.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("body read: %v, want a deadline error", err)
		}
		c.SetWriteDeadline(time.Now().Add(-time.Second))
		if _, err := w.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %v, want a deadline error", err)
		}
		if r.Context().Err() == nil {
			t.Error("the handler's context lives on")
		}
	}, func(t *testing.T, tr *Transport) {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "https://cluster/", strings.NewReader("x"))
		if _, err := tr.RoundTrip(req); err != io.ErrUnexpectedEOF {
			t.Errorf("error %v, want unexpected EOF", err)
		}
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
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Errorf("echo: %v", err)
		}
		r.Body.Close()
		if _, err := r.Body.Read(make([]byte, 1)); err != http.ErrBodyReadAfterClose {
			t.Errorf("read of a closed body: %v", err)
		}
	}, func(t *testing.T, tr *Transport) {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "https://cluster/", strings.NewReader("hello"))
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "hello" || err != nil {
			t.Errorf("body %q, %v", body, err)
		}
	})
}

func TestInformationalStatus(t *testing.T) {
	refused := errors.New("enough")
	for name, test := range map[string]struct {
		trace *httptrace.ClientTrace
		want  error
	}{
		"nobody looks": {&httptrace.ClientTrace{}, nil},
		"refused":      {&httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { return refused }}, refused},
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
				if !errors.Is(err, test.want) || err == nil && resp.StatusCode != 200 {
					t.Errorf("response %v, %v", resp, err)
				}
				synctest.Wait()
				if !continued {
					t.Error("100 Continue was not seen")
				}
			})
		})
	}
}
