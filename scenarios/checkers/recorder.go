package checkers

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/observe"
)

// maxRecords is how many answers and events a Recorder keeps. It drops the oldest, and
// then History returns an error.
const maxRecords = 1 << 20

// Recorder records what clients ask and are told, with any cluster. The zero value is
// ready for use, and all its methods may be called from any goroutine. It buffers answers
// in order to look into them, but changes nothing that clients see. An answer that a client
// does not read to the end is unknown, and so is the body of a request without GetBody.
type Recorder struct {
	once      sync.Once
	trace     *trace.Recorder
	mu        sync.Mutex
	observers []*observe.Observer
}

// Wrap returns a transport that records what it carries, as a separate session, named
// client-1, client-2 and so on. It can be passed to rest.Config.Wrap.
func (r *Recorder) Wrap(inner http.RoundTripper) http.RoundTripper {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wrap(fmt.Sprintf("client-%d", len(r.observers)+1), inner)
}

// Session returns Wrap for a session with this name, which several transports may share.
func (r *Recorder) Session(name string) func(http.RoundTripper) http.RoundTripper {
	return func(inner http.RoundTripper) http.RoundTripper {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.wrap(name, inner)
	}
}

func (r *Recorder) wrap(session string, inner http.RoundTripper) http.RoundTripper {
	// Events of one session are told apart by their transport's number: sessions may share
	// a name, and count their watches each for itself.
	o := observe.New(fmt.Sprintf("%d %s", len(r.observers), session), hosts{inner}, r.records())
	r.observers = append(r.observers, o)
	return o
}

func (r *Recorder) records() *trace.Recorder {
	r.once.Do(func() { r.trace = trace.NewRecorder("recorder", maxRecords) })
	return r.trace
}

// hosts says that the host of a request is its server.
type hosts struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (h hosts) RoundTrip(req *http.Request) (*http.Response, error) {
	observe.AnsweredBy(req, req.URL.Host)
	return h.inner.RoundTrip(req)
}

// History returns what has been recorded so far. Requests that have not been
// answered are included, without an End. If no other client has changed them, set
// Closed: the checks then prove more.
func (r *Recorder) History() (*History, error) {
	r.mu.Lock()
	var pending []trace.Answer
	for _, o := range r.observers {
		pending = append(pending, o.Pending()...)
	}
	r.mu.Unlock()
	if dropped := r.records().Dropped(); dropped > 0 {
		return nil, fmt.Errorf("recorded history: the oldest %d of its records have been dropped; it keeps %d: record less, or in parts", dropped, maxRecords)
	}
	h, err := FromTrace(r.records().Records())
	if err != nil {
		return nil, err
	}
	for _, a := range pending {
		twin := func(op Operation) bool {
			return op.Session == a.Client && op.Start == a.Asked && op.Method == a.Method && op.URI == a.URI
		}
		if !slices.ContainsFunc(h.Operations, twin) { // else it was answered just now
			op := operationOf(trace.Record{}, a, "")
			h.Operations = append(h.Operations, op)
		}
	}
	for i := range h.Operations {
		h.Operations[i].Session = sessionOf(h.Operations[i].Session)
	}
	for i := range h.Watches {
		h.Watches[i].Session = sessionOf(h.Watches[i].Session)
	}
	slices.SortStableFunc(h.Operations, func(a, b Operation) int { return cmp.Compare(a.Start, b.Start) })
	return h, nil
}

// sessionOf returns the name of a session without the number of its transport.
func sessionOf(client string) string {
	_, session, _ := strings.Cut(client, " ")
	return session
}
