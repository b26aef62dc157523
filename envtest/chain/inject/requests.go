package inject

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
	"snowglobe.test/envtest/process"
	"snowglobe.test/envtest/trace"
)

// The servers of the chain in the trace of a request. ServerFilters is for requests
// that a filter answers before they reach one.
const (
	ServerFilters       = "filters"
	ServerAggregator    = "aggregator"
	ServerKubeAPI       = "kube-apiserver"
	ServerAPIExtensions = "apiextensions"
	ServerNotFound      = "not-found"
)

// Requests records every request and which server answers it, asks the rules about
// it, and cancels long-running ones when the server stops. Make it with
// NewRequests.
type Requests struct {
	injector *edge.Injector
	recorder *trace.Recorder
	mu       sync.Mutex
	active   map[*activeRequest]struct{}
}

// activeRequest travels in a request's context; servers put their names into it.
type activeRequest struct {
	asked       *http.Request // as it came in
	mu          sync.Mutex
	server      string
	user        string
	verb        string
	longRunning bool
	// client ends when the client has gone or cancel is called. Unlike the context of
	// the request further down it has no deadline.
	client context.Context
	cancel context.CancelCauseFunc
	conn   connection
}

type activeRequestKey struct{}

// NewRequests returns Requests with a recorder and an injector, which may be nil.
func NewRequests(recorder *trace.Recorder, i *edge.Injector) *Requests {
	return &Requests{injector: i, recorder: recorder, active: map[*activeRequest]struct{}{}}
}

// Outermost wraps the handler of the head server, filters included.
func (r *Requests) Outermost(next http.Handler) http.Handler { return &outermost{r, next} }

// outermost takes one frame of each request's stack. A function in an http.HandlerFunc would take two:
// see TestReadableStacks of envtest.
type outermost struct {
	*Requests
	next http.Handler
}

// ServeHTTP implements http.Handler.
func (r *outermost) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	active := &activeRequest{asked: req, server: ServerFilters, cancel: cancel}
	active.client = context.WithValue(ctx, activeRequestKey{}, active)
	r.track(active, true)
	defer r.track(active, false)

	started := time.Now()
	status := &statusWriter{ResponseWriter: w, conn: &active.conn, code: http.StatusOK}
	defer func() {
		r.recorder.Record(active.event(req, trace.End, status.sent(), time.Since(started)))
	}()
	req = req.WithContext(active.client)
	if process.Serve(func() { r.next.ServeHTTP(responsewriter.WrapForHTTP1Or2(status), req) }) {
		active.conn.abort(io.ErrUnexpectedEOF)
	}
	active.conn.close(ctx, r.injector, w)
}

// HandlerChain wraps upstream's builder of the handler chain, to add a handler behind all
// filters: there a request has a user and a verb, and the aggregator answers or delegates it.
func (r *Requests) HandlerChain(upstream func(http.Handler, *genericapiserver.Config) http.Handler) func(http.Handler, *genericapiserver.Config) http.Handler {
	return func(api http.Handler, config *genericapiserver.Config) http.Handler {
		injected := newRequestInjector(r.injector, api, config.Serializer)
		return upstream(&innermost{r, injected, config.LongRunningFunc}, config)
	}
}

// innermost is the handler behind all filters.
type innermost struct {
	*Requests
	injected    *requestInjector
	longRunning request.LongRunningRequestCheck
}

// ServeHTTP implements http.Handler.
func (r *innermost) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	active := activeOf(req)
	if active == nil {
		r.injected.api.ServeHTTP(w, req)
		return
	}
	active.enter(req, r.longRunning)
	if active.longRunning {
		r.recorder.Record(active.event(req, trace.Start, 0, 0))
	}
	// Not only in outermost: upstream's filters may run this in another goroutine.
	process.Serve(func() { r.injected.serve(w, req, active) })
}

// activeOf returns what travels with a request, nil if not through Outermost.
func activeOf(req *http.Request) *activeRequest {
	active, _ := req.Context().Value(activeRequestKey{}).(*activeRequest)
	return active
}

func (a *activeRequest) enter(req *http.Request, longRunning request.LongRunningRequestCheck) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server = ServerAggregator
	if user, ok := request.UserFrom(req.Context()); ok {
		a.user = user.GetName()
	}
	if info, ok := request.RequestInfoFrom(req.Context()); ok {
		a.verb = info.Verb
		a.longRunning = longRunning(req, info)
	}
}

func (a *activeRequest) event(req *http.Request, phase trace.Phase, code int, took time.Duration) trace.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return trace.Request{
		Method: req.Method, URI: req.URL.RequestURI(), Verb: a.verb, User: a.user, UserAgent: req.UserAgent(),
		Phase: phase, Code: code, Server: a.server, Duration: took, Err: a.conn.err(),
	}
}

// AnsweredBy wraps a delegation target so that requests that reach it, and go no
// further, are recorded as answered by that server.
func AnsweredBy(server string, target genericapiserver.DelegationTarget) genericapiserver.DelegationTarget {
	return &namedTarget{DelegationTarget: target, server: server}
}

type namedTarget struct {
	genericapiserver.DelegationTarget
	server string
}

// UnprotectedHandler implements genericapiserver.DelegationTarget.
func (n *namedTarget) UnprotectedHandler() http.Handler {
	return &namedHandler{n.DelegationTarget.UnprotectedHandler(), n.server}
}

// namedHandler notes that a request has reached a server.
type namedHandler struct {
	http.Handler
	server string
}

// ServeHTTP implements http.Handler.
func (n *namedHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if active := activeOf(req); active != nil {
		active.mu.Lock()
		active.server = n.server
		active.mu.Unlock()
	}
	n.Handler.ServeHTTP(w, req)
}

func (r *Requests) track(a *activeRequest, active bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if active {
		r.active[a] = struct{}{}
	} else {
		delete(r.active, a)
	}
}

// CancelLongRunning ends watch, log and proxy streams, as a process's end would.
func (r *Requests) CancelLongRunning(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for a := range r.active {
		a.mu.Lock()
		if a.longRunning {
			a.cancel(cause)
		}
		a.mu.Unlock()
	}
}

// InFlight returns the requests that are being handled, a line each, sorted,
// without the long-running ones and those that are held.
func (r *Requests) InFlight(held []fault.Held) []string {
	waits := map[*activeRequest]bool{}
	for _, h := range held {
		if active, ok := h.Value(activeRequestKey{}).(*activeRequest); ok {
			waits[active] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var requests []string
	for a := range r.active {
		a.mu.Lock()
		if !a.longRunning && !waits[a] {
			requests = append(requests, fmt.Sprintf("%s %s is in flight", a.asked.Method, a.asked.URL.RequestURI()))
		}
		a.mu.Unlock()
	}
	slices.Sort(requests)
	return requests
}
