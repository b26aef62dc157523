package observe

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/streaming/pkg/httpstream"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/watchframe"
)

// Observer is a transport that records what a client receives. Make it with New.
type Observer struct {
	client   string
	inner    http.RoundTripper
	recorder *trace.Recorder

	mu      sync.Mutex
	watches map[string]int  // how many of each URI there have been, see watchName
	pending []*trace.Answer // to requests that have not been answered yet
}

// New returns a transport that records what a client of that name is told by inner.
func New(client string, inner http.RoundTripper, recorder *trace.Recorder) *Observer {
	return &Observer{client: client, inner: inner, recorder: recorder, watches: map[string]int{}}
}

// Pending returns what is known of requests that have no answer yet, oldest first. One
// may also be in the trace already, if it was answered just now. Watches are not here.
func (o *Observer) Pending() []trace.Answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []trace.Answer
	for _, answer := range o.pending {
		all = append(all, *answer)
	}
	return all
}

// serverKey is the context key under which AnsweredBy finds the variable for the server's name.
type serverKey struct{}

// AnsweredBy says which server answers a request, if an Observer is waiting for the
// answer: its record is then that server's. Call it before the answer is returned.
func AnsweredBy(req *http.Request, server string) {
	if place, ok := req.Context().Value(serverKey{}).(*string); ok {
		*place = server
	}
}

// WhoAnswers returns a context for a request, and the place of the name of the server that
// answered it: empty if none did, or none says.
func WhoAnswers(ctx context.Context) (asking context.Context, server *string) {
	server = new(string)
	return context.WithValue(ctx, serverKey{}, server), server
}

// RoundTrip implements http.RoundTripper.
func (o *Observer) RoundTrip(req *http.Request) (*http.Response, error) {
	if httpstream.IsUpgradeRequest(req) {
		return o.inner.RoundTrip(req)
	}
	asking, server := WhoAnswers(req.Context())
	outer := req
	req = req.WithContext(asking)
	answer := trace.Answer{Client: o.client, Method: req.Method, URI: req.URL.RequestURI(), Asked: o.recorder.Seq()}
	answer.Sent, answer.DryRun = sent(req)
	began, answered := time.Now(), o.begin(req, answer)
	response, err := o.inner.RoundTrip(req)
	recorder := o.recorder
	if *server != "" {
		recorder = recorder.For(*server)
		AnsweredBy(outer, *server)
	}
	if err != nil {
		answer.Took, answer.Err = time.Since(began), err
		recorder.Record(answer)
		answered()
		return nil, err
	}
	contentType := response.Header.Get("Content-Type")
	if isWatch(req) && response.StatusCode == http.StatusOK {
		response.Body = o.watch(req, contentType, response.Body, recorder, answer.Asked)
		return response, nil
	}
	answer.Code = response.StatusCode
	response.Body = &tee{ReadCloser: response.Body, left: req.Context().Err, ended: func(body []byte, err error) {
		answer.Took, answer.Err = time.Since(began), err
		if err == nil {
			look(&answer, mediaOf(contentType), body)
		}
		recorder.Record(answer)
		answered()
	}}
	return response, nil
}

// begin remembers a request until answered is called.
func (o *Observer) begin(req *http.Request, answer trace.Answer) (answered func()) {
	if isWatch(req) {
		return func() {}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending = append(o.pending, &answer)
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.pending = slices.DeleteFunc(o.pending, func(other *trace.Answer) bool { return other == &answer })
	}
}

// isWatch reports whether a request asks for a watch, by either of its forms.
func isWatch(req *http.Request) bool {
	watch := req.URL.Query().Get("watch")
	return watch == "true" || watch == "1" || strings.HasPrefix(req.URL.Path, "/api/v1/watch/")
}

// watch records each event when the client has read it, and the end.
func (o *Observer) watch(req *http.Request, contentType string, body io.ReadCloser, recorder *trace.Recorder, asked int64) io.ReadCloser {
	name := watchName(req.URL)
	o.mu.Lock()
	o.watches[name]++
	watch := trace.WatchEvent{Client: o.client, URI: req.URL.RequestURI(), Watch: o.watches[name], Asked: asked}
	o.mu.Unlock()
	splitter := watchframe.NewSplitter(contentType)
	return &tee{ReadCloser: body, left: req.Context().Err, read: func(part []byte) {
		if splitter == nil {
			return
		}
		_ = splitter.Add(part, func(frame watchframe.Frame) error {
			recorder.Record(withFrame(watch, splitter.MediaType(), frame))
			return nil
		})
	}, ended: func(_ []byte, err error) {
		end := watch
		end.Err = err
		recorder.Record(end)
	}}
}

// watchName is the URI of a watch without what differs each time a client opens it again: a
// random timeout, and the resourceVersion from which it goes on.
func watchName(u *url.URL) string {
	query := u.Query()
	query.Del("timeoutSeconds")
	query.Del("resourceVersion")
	return u.Path + "?" + query.Encode()
}

// maxKeptBytes is the longest body that is looked into. A longer one, such as a log
// that is followed, is an answer without objects.
const maxKeptBytes = 64 << 20

// tee calls read with each part of a body, or keeps the parts for ended if there is
// no read. It calls ended once, when the body ends or is closed. A client that
// cancels closes the body and fails to read, in either order; neither is an error.
type tee struct {
	io.ReadCloser
	left  func() error // why the client has left, nil while it has not
	read  func(part []byte)
	ended func(all []byte, err error)
	kept  []byte
	long  bool // kept would be too long
	once  sync.Once
}

// Read implements io.Reader.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	switch {
	case t.read != nil:
		t.read(p[:n])
	case t.long || len(t.kept)+n > maxKeptBytes:
		t.kept, t.long = nil, true
	default:
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
