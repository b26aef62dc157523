package chain

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/process"
	"snowglobe.test/envtest/trace"
)

// The servers of the chain, as a request's trace names them. ServerFilters is
// said of a request that a filter answered before it reached any server.
const (
	ServerFilters       = "filters"
	ServerAggregator    = "aggregator"
	ServerKubeAPI       = "kube-apiserver"
	ServerAPIExtensions = "apiextensions"
	ServerNotFound      = "not-found"
)

// requestTracer records every request and the server of the chain that
// answered it, and ends the long-running ones when the server stops.
type requestTracer struct {
	trace *trace.Recorder
	edge  *fault.Injector
	mu    sync.Mutex
	live  map[*tracedRequest]struct{}
}

// tracedRequest travels with a request's context; the servers of the chain
// write their names into it as the request passes by.
type tracedRequest struct {
	asked       *http.Request // as it came in
	mu          sync.Mutex
	server      string
	user        string
	verb        string
	longRunning bool
	// life ends when the client has gone or cancel is called. Unlike the context
	// of the request further down it has no deadline.
	life   context.Context
	cancel context.CancelCauseFunc
	fate   fate
}

type tracedRequestKey struct{}

func newRequestTracer(recorder *trace.Recorder, edge *fault.Injector) *requestTracer {
	return &requestTracer{trace: recorder, edge: edge, live: map[*tracedRequest]struct{}{}}
}

// outermost wraps the whole handler chain of the head server.
func (t *requestTracer) outermost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithCancelCause(req.Context())
		defer cancel(nil)
		traced := &tracedRequest{asked: req, server: ServerFilters, cancel: cancel}
		traced.life = context.WithValue(ctx, tracedRequestKey{}, traced)
		t.track(traced, true)
		defer t.track(traced, false)

		started := time.Now()
		status := &statusWriter{ResponseWriter: w, code: http.StatusOK, muted: &traced.fate.muted}
		defer func() { t.trace.Record(traced.event(req, trace.End, status.sent(), time.Since(started))) }()
		req = req.WithContext(traced.life)
		if process.Serve(func() { next.ServeHTTP(responsewriter.WrapForHTTP1Or2(status), req) }) {
			traced.fate.breakOff(io.ErrUnexpectedEOF)
		}
		traced.fate.meet(ctx, t.edge, w)
	})
}

// handlerChain wraps upstream's builder of the handler chain: behind all
// filters a request has a user and a verb, and is the aggregator's.
func (t *requestTracer) handlerChain(upstream func(http.Handler, *genericapiserver.Config) http.Handler) func(http.Handler, *genericapiserver.Config) http.Handler {
	return func(api http.Handler, config *genericapiserver.Config) http.Handler {
		edge := newHTTPEdge(t.edge, api, config)
		entered := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			traced := tracedOf(req)
			if traced == nil {
				api.ServeHTTP(w, req)
				return
			}
			traced.enter(req, config.LongRunningFunc)
			if traced.longRunning {
				t.trace.Record(traced.event(req, trace.Start, 0, 0))
			}
			// Upstream's filters may have begun another goroutine.
			process.Serve(func() { edge.serve(w, req, traced) })
		})
		return upstream(entered, config)
	}
}

// tracedOf returns what travels with a request, nil if it is not in the trace.
func tracedOf(req *http.Request) *tracedRequest {
	traced, _ := req.Context().Value(tracedRequestKey{}).(*tracedRequest)
	return traced
}

func (r *tracedRequest) enter(req *http.Request, longRunning request.LongRunningRequestCheck) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server = ServerAggregator
	if user, ok := request.UserFrom(req.Context()); ok {
		r.user = user.GetName()
	}
	if info, ok := request.RequestInfoFrom(req.Context()); ok {
		r.verb = info.Verb
		r.longRunning = longRunning(req, info)
	}
}

func (r *tracedRequest) event(req *http.Request, phase trace.Phase, code int, took time.Duration) trace.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return trace.Request{
		Method: req.Method, URI: req.URL.RequestURI(), Verb: r.verb, User: r.user, UserAgent: req.UserAgent(),
		Phase: phase, Code: code, Server: r.server, Duration: took, Err: r.fate.err(),
	}
}

// answeredBy wraps a delegation target so that a request which reaches it is
// said to be answered by it, unless it goes further down the chain.
func (t *requestTracer) answeredBy(server string, target genericapiserver.DelegationTarget) genericapiserver.DelegationTarget {
	return &namedTarget{DelegationTarget: target, server: server}
}

type namedTarget struct {
	genericapiserver.DelegationTarget
	server string
}

// UnprotectedHandler implements genericapiserver.DelegationTarget.
func (n *namedTarget) UnprotectedHandler() http.Handler {
	next := n.DelegationTarget.UnprotectedHandler()
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if traced := tracedOf(req); traced != nil {
			traced.mu.Lock()
			traced.server = n.server
			traced.mu.Unlock()
		}
		next.ServeHTTP(w, req)
	})
}

func (t *requestTracer) track(r *tracedRequest, live bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if live {
		t.live[r] = struct{}{}
	} else {
		delete(t.live, r)
	}
}

// cancelLongRunning ends every watch, log and proxy stream, as the end of the
// process would.
func (t *requestTracer) cancelLongRunning(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.live {
		r.mu.Lock()
		if r.longRunning {
			r.cancel(cause)
		}
		r.mu.Unlock()
	}
}

// statusWriter remembers the status code of a response, and sends nothing more
// when it is muted.
type statusWriter struct {
	http.ResponseWriter
	code    int
	written bool
	muted   *atomic.Bool
}

var _ responsewriter.UserProvidedDecorator = (*statusWriter)(nil)

// Unwrap implements responsewriter.UserProvidedDecorator.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	if w.muted.Load() {
		return
	}
	if !w.written {
		w.code, w.written = code, code >= http.StatusOK || code == http.StatusSwitchingProtocols
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(p []byte) (int, error) {
	if w.muted.Load() {
		return len(p), nil
	}
	w.written = true
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *statusWriter) Flush() {
	if flusher, ok := w.ResponseWriter.(http.Flusher); ok && !w.muted.Load() {
		w.written = true
		flusher.Flush()
	}
}

// sent is the status code that was sent, 0 if none was.
func (w *statusWriter) sent() int {
	if w.muted.Load() && !w.written {
		return 0
	}
	return w.code
}
