package controllerruntime

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// calls sits between a manager's clients and the API server. It records the calls that write,
// and makes the fault happen at one of them.
type calls struct {
	fault    plannedFault
	staleFor time.Duration
	crashed  chan struct{} // closed when the manager has to be taken for crashed

	mu    sync.Mutex
	made  []string
	times map[string]int
	done  bool          // the fault has happened
	dead  bool          // nothing goes through
	muted chan struct{} // closed when watches may deliver events again, nil if they may
	live  map[*watchBody]struct{}
	old   map[string]bool // paths whose watches are too old to go on
}

// through returns a transport on which the calls are made.
func (c *calls) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) { return c.roundTrip(next, req) })
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (c *calls) roundTrip(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	name, hit, err := c.begin(req)
	if err != nil {
		return nil, err
	}
	if hit && c.fault.family == Stale {
		c.mute()
		time.AfterFunc(c.staleFor, c.unmute)
	}
	if c.isTooOld(req) {
		return tooOld(req), nil
	}
	response, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if name != "" && response.StatusCode < http.StatusMultipleChoices {
		c.succeeded(name)
	}
	switch {
	case hit && c.fault.family == Intermediate:
		_ = response.Body.Close()
		c.crash()
		return nil, syscall.ECONNRESET
	case hit && c.fault.family == Lost:
		_ = response.Body.Close()
		return nil, syscall.ECONNRESET
	case req.URL.Query().Get("watch") == "true":
		response.Body = c.watched(req.URL.Path, response.Body)
	}
	return response, nil
}

// begin returns the name of a call that writes, empty for others, and whether it is the
// one of the fault.
func (c *calls) begin(req *http.Request) (name string, hit bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return "", false, syscall.ECONNREFUSED
	}
	if req.Method == http.MethodGet || isOwn(req) {
		return "", false, nil
	}
	name = verbs[req.Method] + " " + object(req)
	c.times[name]++
	if n := c.times[name]; n > 1 {
		name = fmt.Sprintf("%s, time %d", name, n)
	}
	hit = !c.done && c.fault.call == name
	c.done = c.done || hit
	return name, hit, nil
}

// succeeded notes a call that has written something. Only such calls get faults later: one at a
// call that fails anyway would change nothing.
func (c *calls) succeeded(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made = append(c.made, name)
}

// verbs are Kubernetes' verbs by HTTP method.
var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// isOwn reports whether a call is of the manager's leader election or of its events.
func isOwn(req *http.Request) bool {
	return strings.Contains(req.URL.Path, "/leases") || strings.HasSuffix(req.URL.Path, "/events")
}

// object is RESOURCE NAMESPACE/NAME of a request, as far as its path and its body say.
func object(req *http.Request) string {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	skip := 3 // apis/GROUP/VERSION
	if parts[0] == "api" {
		skip = 2
	}
	parts = parts[min(skip, len(parts)):]
	namespace := ""
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1]+"/", parts[2:]
	}
	switch len(parts) {
	case 0:
		return req.URL.Path
	case 1:
		return parts[0] + " " + namespace + nameInBody(req)
	case 2:
		return parts[0] + " " + namespace + parts[1]
	default: // a subresource
		return parts[0] + "/" + parts[2] + " " + namespace + parts[1]
	}
}

// nameInBody is the name of an object that is created, with a star for what the API server
// adds.
func nameInBody(req *http.Request) string {
	if req.GetBody == nil {
		return ""
	}
	body, err := req.GetBody()
	if err != nil {
		return ""
	}
	defer func() { _ = body.Close() }()
	var created metav1.PartialObjectMetadata
	if err := json.NewDecoder(body).Decode(&created); err != nil {
		return ""
	}
	return cmp.Or(created.Name, created.GenerateName+"*")
}

// crash lets nothing more through: the manager is as good as dead.
func (c *calls) crash() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
	close(c.crashed)
}

// restart lets the calls of the next manager through.
func (c *calls) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead, c.crashed = false, nil
}

// mute keeps watches from delivering events.
func (c *calls) mute() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.muted == nil {
		c.muted = make(chan struct{})
	}
}

// unmute lets watches deliver again. An Unobserved fault must not let them deliver what they
// have held back: then they break off, and the first attempt to resume one is answered with
// 410 Gone, so that the manager has to list.
func (c *calls) unmute() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.muted == nil {
		return
	}
	if c.fault.family == Unobserved {
		for body := range c.live {
			body.broken, c.old[body.path] = true, true
		}
	}
	close(c.muted)
	c.muted = nil
}

// isTooOld reports whether a request resumes a watch that unmute has broken off; true only once
// for each path.
func (c *calls) isTooOld(req *http.Request) bool {
	query := req.URL.Query()
	if query.Get("watch") != "true" || query.Get("resourceVersion") == "" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.old[req.URL.Path]
	delete(c.old, req.URL.Path)
	return old
}

// tooOld is how an API server says that a watch has to begin anew.
func tooOld(req *http.Request) *http.Response {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`
	return &http.Response{
		Status: "410 Gone", StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(status)), Body: io.NopCloser(strings.NewReader(status)),
	}
}

// watched is the body of a watch, which is silent while watches are muted.
func (c *calls) watched(path string, body io.ReadCloser) io.ReadCloser {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &watchBody{ReadCloser: body, calls: c, path: path}
	c.live[w] = struct{}{}
	return w
}

// watchBody is the body of one watch.
type watchBody struct {
	io.ReadCloser
	calls  *calls
	path   string
	broken bool // by unmute
}

// Read implements io.Reader.
func (w *watchBody) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.calls.mu.Lock()
	muted := w.calls.muted
	w.calls.mu.Unlock()
	if muted != nil {
		<-muted
	}
	w.calls.mu.Lock()
	defer w.calls.mu.Unlock()
	if w.broken {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// Close implements io.Closer.
func (w *watchBody) Close() error {
	w.calls.mu.Lock()
	delete(w.calls.live, w)
	w.calls.mu.Unlock()
	return w.ReadCloser.Close()
}
