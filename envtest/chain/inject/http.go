package inject

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"snowglobe.test/envtest/fault"
)

// requestInjector asks the rules about requests, between upstream's filters and its
// servers, where they have a user and a verb, and about responses on the way back.
type requestInjector struct {
	injector   *fault.Injector
	api        http.Handler
	serializer runtime.NegotiatedSerializer
	verbs      []string // those that rules can name
}

func newRequestInjector(i *fault.Injector, api http.Handler, serializer runtime.NegotiatedSerializer) *requestInjector {
	points, _ := fault.FindPoints("http/<verb>") // there are some
	return &requestInjector{injector: i, api: api, serializer: serializer, verbs: points[0].Names}
}

// serve handles a request. Without rules a short one goes straight to the server; a
// long-running one is wrapped anyway, as rules may be added while it runs.
func (r *requestInjector) serve(w http.ResponseWriter, req *http.Request, active *activeRequest) {
	if r.injector == nil || !active.longRunning && !r.injector.Active() && !r.injector.Latency() {
		r.api.ServeHTTP(w, req)
		return
	}
	c := &call{requestInjector: r, active: active}
	if c.info, _ = request.RequestInfoFrom(req.Context()); c.info == nil || !slices.Contains(r.verbs, verbOf(req, c.info)) {
		r.api.ServeHTTP(w, req)
		return
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	c.req, c.cancel = req.WithContext(ctx), cancel
	if c.name = c.info.Name; c.name == "" && c.info.Verb == "create" && r.injector.Active() {
		c.name = nameInBody(c.req)
	}
	c.serve(w)
}

// call is one request that rules may match.
type call struct {
	*requestInjector
	active *activeRequest
	info   *request.RequestInfo
	name   string // of the object
	req    *http.Request
	cancel context.CancelCauseFunc // ends the context of req
}

// operation describes the request in a phase of its life.
func (c *call) operation(phase fault.Phase) func() fault.Operation {
	return func() fault.Operation {
		op := fault.Operation{
			Point: fault.HTTPPoint + verbOf(c.req, c.info), Phase: phase, Resource: resourceOf(c.info),
			Namespace: c.info.Namespace, Name: c.name, Key: keyOf(c.req, c.info), Caller: callerOf(c.req),
		}
		if c.info.APIGroup == "" && c.info.Resource == "namespaces" {
			op.Namespace = "" // upstream has the name there as well
		}
		return op
	}
}

// serve handles the request as the rules say.
func (c *call) serve(w http.ResponseWriter) {
	fault.Execute(c.active.client, c.injector, c.operation(fault.Before), fault.Ways[done]{
		Proceed: func() done { return c.handle(w) },
		Fail:    func(err error) done { return c.fail(w, err) },
		Discard: func() { serveDiscarding(c.api, c.req, c.active.longRunning) },
		Drop: func() done {
			c.active.conn.drop()
			return done{}
		},
		Cancel: func() done {
			c.cancel(context.Canceled)
			return c.handle(w)
		},
		// The client has gone, the request timed out, or the server crashed.
		Abort: func(error) done {
			c.active.conn.abort(io.ErrUnexpectedEOF)
			return done{}
		},
	})
}

// done is the result of an operation that has none.
type done struct{}

// handle passes the request to the server and asks about the response.
func (c *call) handle(w http.ResponseWriter) done {
	response := &response{ResponseWriter: w, call: c, header: w.Header().Clone()}
	var decorator responsewriter.UserProvidedDecorator = response
	finish := response.finish
	if c.info.Verb == "watch" && c.info.IsResourceRequest {
		watch := &watchResponse{response: response}
		decorator, finish = watch, watch.finish
	}
	c.api.ServeHTTP(responsewriter.WrapForHTTP1Or2(decorator), c.req)
	finish()
	c.injector.Report(c.operation(fault.Before), response.failed())
	return done{}
}

// fail answers with an API error as upstream does; others break the connection.
func (c *call) fail(w http.ResponseWriter, err error) done {
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		c.active.conn.abort(err)
		return done{}
	}
	version := schema.GroupVersion{Group: c.info.APIGroup, Version: c.info.APIVersion}
	responsewriters.ErrorNegotiated(err, c.serializer, version, w, c.req)
	return done{}
}
