package controllerruntime

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// calls are the API calls of a manager, and where its fault happens: between its clients
// and the API server.
type calls struct {
	fault    plannedFault
	staleFor time.Duration
	crashed  chan struct{} // closed when the manager has to be taken for crashed

	mu    sync.Mutex
	made  []string
	times map[string]int
	done  bool          // the fault has happened
	dead  bool          // nothing goes through
	muted chan struct{} // closed when watches may tell again, nil if they may
	live  map[*watchBody]struct{}
	old   map[string]bool // paths whose watches are too old to go on
}

func newCalls(fault plannedFault, staleFor time.Duration) *calls {
	return &calls{fault: fault, staleFor: staleFor, crashed: make(chan struct{}), times: map[string]int{}, live: map[*watchBody]struct{}{}, old: map[string]bool{}}
}

// through returns a transport on which the calls are made.
func (c *calls) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) { return c.roundTrip(next, req) })
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (c *calls) roundTrip(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	hit, err := c.begin(req)
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

// begin notes a call, and says whether it is the one of the fault.
func (c *calls) begin(req *http.Request) (hit bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return false, syscall.ECONNREFUSED
	}
	if req.Method == http.MethodGet || isLease(req) {
		return false, nil
	}
	name := strings.ToLower(verbs[req.Method]) + " " + object(req.URL.Path)
	c.times[name]++
	if n := c.times[name]; n > 1 {
		name = fmt.Sprintf("%s, time %d", name, n)
	}
	c.made = append(c.made, name)
	hit = !c.done && c.fault.call == name
	c.done = c.done || hit
	return hit, nil
}

// verbs are Kubernetes' for methods.
var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// isLease reports whether a call is the manager's own, of its leader election or events.
func isLease(req *http.Request) bool {
	return strings.Contains(req.URL.Path, "/leases") || strings.HasSuffix(req.URL.Path, "/events")
}

// object is RESOURCE NAMESPACE/NAME of a path, as far as it says.
func object(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
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
		return path
	case 1:
		return strings.TrimSuffix(parts[0]+" "+namespace, " ")
	case 2:
		return parts[0] + " " + namespace + parts[1]
	default: // a subresource
		return parts[0] + "/" + parts[2] + " " + namespace + parts[1]
	}
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

// mute lets watches tell nothing.
func (c *calls) mute() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.muted == nil {
		c.muted = make(chan struct{})
	}
}

// unmute lets watches tell again. If they are not to tell what they have missed, they
// break off, and can't be taken up where they were.
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

// isTooOld reports whether a request goes on with a watch that is too old, once each.
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
