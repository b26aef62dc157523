package lies_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
)

// lie is one way in which a server could break a promise: it changes requests before the
// server sees them, or answers before the case sees them.
type lie struct {
	name    string
	about   func(*http.Request) bool
	request func(*http.Request)
	answer  func(*http.Request, *http.Response)
}

// about matches requests by method (any if empty) and a regular expression for path and
// query.
func about(method, pattern string) func(*http.Request) bool {
	matches := regexp.MustCompile(pattern)
	return func(req *http.Request) bool {
		return (method == "" || req.Method == method) && matches.MatchString(req.URL.RequestURI())
	}
}

// liar wraps a transport with one lie.
type liar struct {
	honest http.RoundTripper
	lie    lie
	told   *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (l *liar) RoundTrip(req *http.Request) (*http.Response, error) {
	if !l.lie.about(req) {
		return l.honest.RoundTrip(req)
	}
	l.told.Add(1)
	asked := req
	if l.lie.request != nil {
		req = req.Clone(req.Context())
		l.lie.request(req)
	}
	resp, err := l.honest.RoundTrip(req)
	if err == nil && l.lie.answer != nil {
		l.lie.answer(asked, resp)
	}
	return resp, err
}

// query replaces a query parameter of the request; without values it removes it.
func query(name string, values ...string) func(*http.Request) {
	return func(req *http.Request) {
		asked := req.URL.Query()
		asked.Del(name)
		for _, value := range values {
			asked.Set(name, value)
		}
		req.URL.RawQuery = asked.Encode()
	}
}

// header replaces a header of the request; without a value it removes it.
func header(name, value string) func(*http.Request) {
	return func(req *http.Request) {
		req.Header.Del(name)
		if value != "" {
			req.Header.Set(name, value)
		}
	}
}

// path changes the path of the request.
func path(old, new string) func(*http.Request) {
	matches := regexp.MustCompile(old)
	return func(req *http.Request) {
		changed, err := url.Parse(matches.ReplaceAllString(req.URL.Path, new))
		if err != nil {
			panic(err)
		}
		req.URL.Path, req.URL.RawPath = changed.Path, ""
	}
}

// sent changes the body of the request.
func sent(old, new string) func(*http.Request) {
	matches := regexp.MustCompile(old)
	return func(req *http.Request) {
		if req.Body == nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			panic(err)
		}
		body = matches.ReplaceAll(body, []byte(new))
		req.Body, req.ContentLength, req.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	}
}

// code changes the status code of the answer, with a body to match.
func code(from, to int) func(*http.Request, *http.Response) {
	return func(_ *http.Request, resp *http.Response) {
		if resp.StatusCode != from {
			return
		}
		_ = resp.Body.Close()
		body := "{}"
		if to >= http.StatusBadRequest {
			body = fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"a lie","code":%d}`, to)
		}
		resp.StatusCode, resp.Status = to, http.StatusText(to)
		replace(resp, io.NopCloser(strings.NewReader(body)))
	}
}

// without removes a header from the answer.
func without(name string) func(*http.Request, *http.Response) {
	return func(_ *http.Request, resp *http.Response) { resp.Header.Del(name) }
}

func replace(resp *http.Response, body io.ReadCloser) {
	resp.Body, resp.ContentLength = body, -1
	resp.Header.Del("Content-Length")
}

// text replaces text in answers, in documents and in events.
func text(old, new string) func(*http.Request, *http.Response) {
	matches := regexp.MustCompile(old)
	return lines(func(_ int, line []byte) [][]byte { return [][]byte{matches.ReplaceAll(line, []byte(new))} })
}

// event changes one event of each stream, counted from 0.
func event(n int, change func(line []byte) [][]byte) func(*http.Request, *http.Response) {
	return lines(func(i int, line []byte) [][]byte {
		if i == n {
			return change(line)
		}
		return [][]byte{line}
	})
}

func dropped([]byte) [][]byte      { return nil }
func doubled(line []byte) [][]byte { return [][]byte{line, line} }
func keep(line []byte) [][]byte    { return [][]byte{line} }
func failing(line []byte) [][]byte {
	return [][]byte{line, []byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}}` + "\n")}
}

// swapped swaps two neighbouring events.
func swapped(n int) func(*http.Request, *http.Response) {
	return func(req *http.Request, resp *http.Response) {
		var held []byte
		lines(func(i int, line []byte) [][]byte {
			switch i {
			case n:
				held = bytes.Clone(line)
				return nil
			case n + 1:
				return [][]byte{line, held}
			}
			return keep(line)
		})(req, resp)
	}
}

// lines filters the lines of an answer as they arrive.
func lines(filter func(i int, line []byte) [][]byte) func(*http.Request, *http.Response) {
	return func(_ *http.Request, resp *http.Response) {
		replace(resp, &lineFilter{Closer: resp.Body, in: bufio.NewReader(resp.Body), filter: filter})
	}
}

type lineFilter struct {
	io.Closer
	in     *bufio.Reader
	filter func(i int, line []byte) [][]byte
	n      int
	out    []byte
	err    error
}

// Read implements io.Reader.
func (f *lineFilter) Read(p []byte) (int, error) {
	for len(f.out) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		var line []byte
		if line, f.err = f.in.ReadBytes('\n'); len(line) > 0 {
			f.out = bytes.Join(f.filter(f.n, line), nil)
			f.n++
		}
	}
	n := copy(p, f.out)
	f.out = f.out[n:]
	return n, nil
}

// stale repeats the first answer for the collection.
func stale() func(*http.Request, *http.Response) {
	first := map[string][]byte{}
	return func(req *http.Request, resp *http.Response) {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			panic(err)
		}
		_ = resp.Body.Close()
		if _, known := first[req.URL.Path]; !known {
			first[req.URL.Path] = body
		}
		replace(resp, io.NopCloser(bytes.NewReader(first[req.URL.Path])))
	}
}
