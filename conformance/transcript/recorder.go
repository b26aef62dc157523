package transcript

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"snowglobe.test/internal/watchframe"
)

// The most that a recorder keeps: some hundred kilobytes, while a case runs.
const (
	maxExchanges = 20
	maxEvents    = 20 // of each watch
	// A credential must be found as a whole, so more is kept of a text than is shown.
	keptBytes  = 8 << 10
	shownBytes = 4 << 10
)

// Recorder keeps the last exchanges of all clients whose transports it wraps.
type Recorder struct {
	begun time.Time

	mu   sync.Mutex // guards what is below
	kept []*exchange
}

// exchange is an Exchange as it is kept while it goes on. Only failed cases pay for more.
type exchange struct {
	server, method, path    string
	request, answer         content
	status                  int
	err                     error
	watch                   *watchframe.Splitter // nil if it is none
	events                  []content
	begun                   time.Time
	took                    time.Duration
	ended                   bool
	times                   int
	requestHead, answerHead http.Header
}

// content is the beginning of a body.
type content struct {
	text []byte
	size int
}

func (c *content) add(p []byte) {
	c.text = append(c.text, p[:min(len(p), keptBytes-len(c.text))]...)
	c.size += len(p)
}

func (c *content) equal(other content) bool {
	return c.size == other.size && bytes.Equal(c.text, other.text)
}

// NewRecorder returns a recorder. What it records is timed from now on.
func NewRecorder() *Recorder { return &Recorder{begun: time.Now()} }

// Wrap returns a transport that records what passes.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper { return &recording{r, next} }

// recording is a transport that is recorded.
type recording struct {
	recorder *Recorder
	next     http.RoundTripper
}

// WrappedRoundTripper implements the interface of apimachinery by which the connections of a
// transport are closed.
func (t *recording) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *recording) RoundTrip(req *http.Request) (*http.Response, error) {
	e := t.recorder.begin(req)
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		t.recorder.end(e, err)
		return resp, err
	}
	t.recorder.answered(e, req, resp)
	return resp, nil
}

func (r *Recorder) begin(req *http.Request) *exchange {
	e := &exchange{server: req.URL.Host, method: req.Method, path: req.URL.RequestURI(), begun: time.Now(), times: 1}
	e.requestHead, e.request = requestHeaders(req.Header), sent(req)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) == maxExchanges {
		// A watch that goes on may be what matters, however long ago it began.
		oldest := max(0, slices.IndexFunc(r.kept, func(e *exchange) bool { return e.ended }))
		r.kept = slices.Delete(r.kept, oldest, oldest+1)
	}
	r.kept = append(r.kept, e)
	return e
}

// sent reads the beginning of a request's body, of those that can be read twice.
func sent(req *http.Request) (c content) {
	if req.GetBody == nil {
		return c
	}
	body, err := req.GetBody()
	if err != nil {
		return c
	}
	c.text, _ = io.ReadAll(io.LimitReader(body, keptBytes))
	c.size = max(len(c.text), int(req.ContentLength))
	_ = body.Close()
	return c
}

// answered records an answer, and has its body recorded as it is read. That of an upgrade is a
// connection, which stays as it is.
func (r *Recorder) answered(e *exchange, req *http.Request, resp *http.Response) {
	r.mu.Lock()
	e.status, e.answerHead = resp.StatusCode, answerHeaders(resp.Header)
	if watch := req.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		e.watch = watchframe.NewSplitter(resp.Header.Get("Content-Type"))
	}
	r.mu.Unlock()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		r.end(e, nil)
		return
	}
	resp.Body = &recordedBody{resp.Body, r, e}
}

// recordedBody is the body of an answer.
type recordedBody struct {
	io.ReadCloser
	recorder *Recorder
	exchange *exchange
}

// Read implements io.Reader.
func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.recorder.read(b.exchange, p[:n])
	if err != nil {
		b.recorder.end(b.exchange, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *recordedBody) Close() error {
	b.recorder.end(b.exchange, nil)
	return b.ReadCloser.Close()
}

func (r *Recorder) read(e *exchange, p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.watch == nil {
		e.answer.add(p)
		return
	}
	_ = e.watch.Add(p, func(frame watchframe.Frame) error {
		if len(e.events) == maxEvents {
			e.events = slices.Delete(e.events, 0, 1)
		}
		var event content
		event.add(frame.Wire)
		e.events = append(e.events, event)
		return nil
	})
}

// end records that an answer has ended, the first time. If it is the last one over again,
// that is counted only.
func (r *Recorder) end(e *exchange, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.ended {
		return
	}
	e.ended, e.took = true, time.Since(e.begun)
	if !errors.Is(err, io.EOF) {
		e.err = err
	}
	i := slices.Index(r.kept, e)
	if i > 0 && r.kept[i-1].repeatedBy(e) {
		r.kept[i-1].times++
		r.kept = slices.Delete(r.kept, i, i+1)
	}
}

func (e *exchange) repeatedBy(next *exchange) bool {
	return e.ended && e.watch == nil && e.err == nil && next.err == nil && next.watch == nil &&
		e.method == next.method && e.server == next.server && e.path == next.path && e.status == next.status &&
		e.request.equal(next.request) && e.answer.equal(next.answer)
}

// Exchanges returns what was recorded, oldest first, without credentials.
func (r *Recorder) Exchanges() []Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Exchange
	for _, e := range r.kept {
		all = append(all, e.shown(r.begun))
	}
	return all
}
