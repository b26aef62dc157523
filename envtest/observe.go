package envtest

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/httpstream"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/watchframe"
)

// observer is a transport that records what a client receives.
type observer struct {
	client   string
	inner    http.RoundTripper
	recorder *trace.Recorder

	mu      sync.Mutex
	watches map[string]int // how many of each URI there have been, see watchName
}

// observed wraps the transport of a user in an observer if the trace is to be full.
func (cp *ControlPlane) observed(user string, inner http.RoundTripper) http.RoundTripper {
	if !cp.cfg.fullTrace {
		return inner
	}
	return &observer{client: user, inner: inner, recorder: cp.recorder, watches: map[string]int{}}
}

// RoundTrip implements http.RoundTripper.
func (o *observer) RoundTrip(req *http.Request) (*http.Response, error) {
	if httpstream.IsUpgradeRequest(req) {
		return o.inner.RoundTrip(req)
	}
	response, err := o.inner.RoundTrip(req)
	if err != nil {
		o.recorder.Record(trace.Answer{Client: o.client, Method: req.Method, URI: req.URL.RequestURI(), Err: err})
		return nil, err
	}
	contentType := response.Header.Get("Content-Type")
	if isWatch(req) && response.StatusCode == http.StatusOK {
		response.Body = o.watch(req, contentType, response.Body)
	} else {
		response.Body = o.answer(req, contentType, response)
	}
	return response, nil
}

// isWatch reports whether a request asks for a watch, by either of its forms.
func isWatch(req *http.Request) bool {
	watch := req.URL.Query().Get("watch")
	return watch == "true" || watch == "1" || strings.HasPrefix(req.URL.Path, "/api/v1/watch/")
}

// answer records a response when the client has read it, or has had enough.
func (o *observer) answer(req *http.Request, contentType string, response *http.Response) io.ReadCloser {
	answer := trace.Answer{Client: o.client, Method: req.Method, URI: req.URL.RequestURI(), Code: response.StatusCode}
	return &tee{ReadCloser: response.Body, left: req.Context().Err, ended: func(body []byte, err error) {
		answer.Err = err
		if err == nil {
			seen := peek(mediaOf(contentType), body)
			answer.Reason, answer.Revision, answer.Objects = seen.reason, seen.revision, seen.objects
		}
		o.recorder.Record(answer)
	}}
}

// watch records each event when the client has read it, and the end.
func (o *observer) watch(req *http.Request, contentType string, body io.ReadCloser) io.ReadCloser {
	name := watchName(req.URL)
	o.mu.Lock()
	o.watches[name]++
	watch := trace.WatchEvent{Client: o.client, URI: req.URL.RequestURI(), Watch: o.watches[name]}
	o.mu.Unlock()
	splitter := watchframe.NewSplitter(contentType)
	return &tee{ReadCloser: body, left: req.Context().Err, read: func(part []byte) {
		if splitter == nil {
			return
		}
		_ = splitter.Add(part, func(frame watchframe.Frame) error {
			event := watch
			event.Type, event.Reason, event.Object = peekEvent(splitter.MediaType(), frame)
			o.recorder.Record(event)
			return nil
		})
	}, ended: func(_ []byte, err error) {
		end := watch
		end.Err = err
		o.recorder.Record(end)
	}}
}

// watchName is the URI of a watch without what it does not choose: a timeout that is
// random, and where it goes on.
func watchName(u *url.URL) string {
	query := u.Query()
	query.Del("timeoutSeconds")
	query.Del("resourceVersion")
	return u.Path + "?" + query.Encode()
}

// tee calls read with each part of a body, or keeps the parts for ended if there is
// no read. It calls ended once, when the body ends or is closed. A client that
// cancels closes the body and fails to read, in either order; neither is an error.
type tee struct {
	io.ReadCloser
	left  func() error // why the client has left, nil while it has not
	read  func(part []byte)
	ended func(all []byte, err error)
	kept  []byte
	once  sync.Once
}

// Read implements io.Reader.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if t.read != nil {
		t.read(p[:n])
	} else {
		t.kept = append(t.kept, p[:n]...)
	}
	if err != nil {
		t.end(err)
	}
	return n, err
}

// Close implements io.Closer.
func (t *tee) Close() error {
	err := t.ReadCloser.Close()
	t.end(nil)
	return err
}

func (t *tee) end(err error) {
	if errors.Is(err, io.EOF) || t.left() != nil {
		err = nil
	}
	t.once.Do(func() { t.ended(t.kept, err) })
}
