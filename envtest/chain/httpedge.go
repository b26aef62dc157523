package chain

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/fault"
)

// httpEdge asks about requests between upstream's filters and its servers, where
// a request has a user and a verb, and about their answers on the way back.
type httpEdge struct {
	edge       *fault.Injector
	api        http.Handler
	serializer runtime.NegotiatedSerializer
	verbs      map[string]bool // those that rules can name
}

func newHTTPEdge(edge *fault.Injector, api http.Handler, config *genericapiserver.Config) *httpEdge {
	h := &httpEdge{edge: edge, api: api, serializer: config.Serializer, verbs: map[string]bool{}}
	for _, kind := range fault.Points() {
		if strings.HasPrefix(kind.Name, "http/") {
			for _, verb := range kind.Names {
				h.verbs[verb] = true
			}
		}
	}
	return h
}

// serve handles a request. Without rules a short one goes straight on; one that
// runs long is followed, because rules may come while it runs.
func (h *httpEdge) serve(w http.ResponseWriter, req *http.Request, traced *tracedRequest) {
	if h.edge == nil || !traced.longRunning && !h.edge.Active() {
		h.api.ServeHTTP(w, req)
		return
	}
	x := &bendable{httpEdge: h, traced: traced}
	if x.info, _ = request.RequestInfoFrom(req.Context()); x.info == nil || !h.verbs[x.verb(req)] {
		h.api.ServeHTTP(w, req)
		return
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	x.req, x.cancel = req.WithContext(ctx), cancel
	if x.name = x.info.Name; x.name == "" && x.info.Verb == "create" && h.edge.Active() {
		x.name = createdName(x.req)
	}
	x.serve(w)
}

// bendable is one request at the edge.
type bendable struct {
	*httpEdge
	traced *tracedRequest
	info   *request.RequestInfo
	name   string // of the object
	req    *http.Request
	cancel context.CancelCauseFunc // ends the context of req
}

// verb is upstream's; a method that upstream has no verb for stands for itself.
func (x *bendable) verb(req *http.Request) string {
	if x.info.Verb == "" {
		return strings.ToLower(req.Method)
	}
	return x.info.Verb
}

// at asks about the request in a phase of its life.
func (x *bendable) at(phase fault.Phase) (fault.Decision, error) {
	return x.edge.At(x.traced.life, func() fault.Operation {
		op := fault.Operation{
			Point: "http/" + x.verb(x.req), Phase: phase, Resource: x.resource(),
			Namespace: x.info.Namespace, Name: x.name, Key: requestKey(x.req, x.info), Caller: x.caller(),
		}
		if x.info.APIGroup == "" && x.info.Resource == "namespaces" {
			op.Namespace = "" // upstream has the name there as well
		}
		return op
	})
}

// resource is the request's, such as "pods", "deployments.apps", "pods/status"
// or "deployments.apps/scale"; empty if it is about none.
func (x *bendable) resource() string {
	if !x.info.IsResourceRequest {
		return ""
	}
	return withSubresource(schema.GroupResource{Group: x.info.APIGroup, Resource: x.info.Resource}.String(), x.info.Subresource)
}

func (x *bendable) caller() string {
	if user, ok := request.UserFrom(x.req.Context()); ok {
		return user.GetName()
	}
	return ""
}

// serve handles the request as the rules say.
func (x *bendable) serve(w http.ResponseWriter) {
	d, err := x.at(fault.Before)
	if err != nil {
		x.giveUp()
		return
	}
	switch d.Kind {
	case fault.Fail:
		x.fail(w, d.Err())
	case fault.LoseReply:
		x.handleUnheard(x.req.Body)
		x.fail(w, d.Err())
	case fault.Drop:
		x.traced.fate.lose()
	case fault.Duplicate:
		x.handleTwice(w)
	case fault.Cancel:
		x.cancel(context.Canceled)
		x.handle(w)
	default:
		x.handle(w)
	}
}

// handle has the request handled, and asks about the answer.
func (x *bendable) handle(w http.ResponseWriter) {
	a := newAnswer(x, w)
	var decorator responsewriter.UserProvidedDecorator = a
	finish := a.finish
	if x.info.Verb == "watch" && x.info.IsResourceRequest {
		watch := &watchAnswer{answer: a}
		decorator, finish = watch, watch.finish
	}
	x.api.ServeHTTP(responsewriter.WrapForHTTP1Or2(decorator), x.req)
	finish()
}

// handleUnheard has the request handled without anybody hearing of it. One that
// runs long is left when its answer begins: it would not end by itself.
func (x *bendable) handleUnheard(body io.ReadCloser) {
	ctx, leave := context.WithCancelCause(x.req.Context())
	defer leave(nil)
	w := &unheard{header: http.Header{}, began: func() {}}
	if x.traced.longRunning {
		w.began = func() { leave(context.Canceled) }
	}
	req := x.req.Clone(ctx)
	req.Body = body
	x.api.ServeHTTP(w, req)
}

func (x *bendable) handleTwice(w http.ResponseWriter) {
	body, err := io.ReadAll(x.req.Body)
	if err != nil {
		x.giveUp()
		return
	}
	x.handleUnheard(io.NopCloser(bytes.NewReader(body)))
	x.req.Body = io.NopCloser(bytes.NewReader(body))
	x.handle(w)
}

// fail answers with an error as upstream does, or breaks the connection if the
// error is one of the network.
func (x *bendable) fail(w http.ResponseWriter, err error) {
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		x.traced.fate.breakOff(err)
		return
	}
	version := schema.GroupVersion{Group: x.info.APIGroup, Version: x.info.APIVersion}
	responsewriters.ErrorNegotiated(err, x.serializer, version, w, x.req)
}

// giveUp ends a request that can't go on: its client has gone, or upstream's
// filters have answered because its time is up, or the server has crashed.
func (x *bendable) giveUp() { x.traced.fate.breakOff(io.ErrUnexpectedEOF) }

// unheard is where an answer goes that nobody gets.
type unheard struct {
	header http.Header
	began  func()
}

// Header implements http.ResponseWriter.
func (w *unheard) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *unheard) WriteHeader(int) { w.began() }

// Write implements http.ResponseWriter.
func (w *unheard) Write(p []byte) (int, error) {
	w.began()
	return len(p), nil
}

// Flush implements http.Flusher.
func (w *unheard) Flush() { w.began() }

// CloseNotify implements http.CloseNotifier, without which upstream's wrappers
// would not flush.
func (w *unheard) CloseNotify() <-chan bool { return make(chan bool) }
