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
	"snowglobe.test/envtest/fault/edge"
)

// requestInjector asks the rules about requests, between upstream's filters and its
// servers, where they have a user and a verb, and about responses on the way back.
type requestInjector struct {
	injector   *edge.Injector
	api        http.Handler
	serializer runtime.NegotiatedSerializer
	verbs      []string // those that rules can name
}

func newRequestInjector(i *edge.Injector, api http.Handler, serializer runtime.NegotiatedSerializer) *requestInjector {
	points, _ := fault.FindPoints("http/<verb>") // there are some
	return &requestInjector{injector: i, api: api, serializer: serializer, verbs: points[0].Names}
}

// serve handles a request. Without rules a short one goes straight to the server; a
// long-running one is wrapped anyway, as rules may be added while it runs.
func (r *requestInjector) serve(w http.ResponseWriter, req *http.Request, active *activeRequest) {
	if r.injector == nil || !active.longRunning && !r.injector.Concerned() {
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
	if !c.injector.Concerned() {
		c.handle(w) // with two frames less on the stack: TestReadableStacks
		return
	}
	edge.Execute(c.active.client, c.injector, c.operation(fault.Before), edge.Ways[*response]{
		Proceed: func() *response { return c.handle(w) },
		Fail: func(err error) *response {
			c.fail(w, err)
			return nil
		},
		Discard: func() { serveDiscarding(c.api, c.req, c.active.longRunning) },
		Drop: func() *response {
			c.active.conn.drop()
			return nil
		},
		Cancel: func() *response {
			c.cancel(context.Canceled)
			return c.handle(w)
		},
		// The client has gone, the request timed out, or the server crashed.
		Abort: func(error) *response {
			c.active.conn.abort(io.ErrUnexpectedEOF)
			return nil
		},
		Failed: (*response).failed,
	})
}

// handle passes the request to the server and asks about the response.
func (c *call) handle(w http.ResponseWriter) *response {
	response := &response{ResponseWriter: w, call: c, header: w.Header().Clone()}
	var decorator responsewriter.UserProvidedDecorator = response
	finish := response.finish
	if c.info.Verb == "watch" && c.info.IsResourceRequest {
		watch := &watchResponse{response: response}
		decorator, finish = watch, watch.finish
	}
	c.api.ServeHTTP(responsewriter.WrapForHTTP1Or2(decorator), c.req)
	finish()
	return response
}

// fail answers with an API error as upstream does; others break the connection.
func (c *call) fail(w http.ResponseWriter, err error) {
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		c.active.conn.abort(err)
		return
	}
	version := schema.GroupVersion{Group: c.info.APIGroup, Version: c.info.APIVersion}
	responsewriters.ErrorNegotiated(err, c.serializer, version, w, c.req)
}
