package chain

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/endpoints/request"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"snowglobe.test/envtest/fault"
)

// bendAPIServices asks before the aggregator passes a client's request on to an
// aggregated server. Upstream's proxy has no seam between its decision and the
// connection, so that this is right before the decision, which it foresees; what
// the client is told is upstream's own proxy's answer to what was bent.
func (c *Chain) bendAPIServices(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !c.injector.Active() {
			api.ServeHTTP(w, req)
			return
		}
		op, ok := c.aggregated(req)
		if !ok {
			api.ServeHTTP(w, req)
			return
		}
		d, err := c.injector.At(req.Context(), func() fault.Operation { return op })
		switch {
		case err != nil:
			reachNobody(w, req, func(*http.Request) (*http.Response, error) { return nil, err })
		case d.Kind == fault.Pass:
			api.ServeHTTP(w, req)
		case d.Kind == fault.Duplicate:
			c.passTwice(w, req, api)
		default:
			reachNobody(w, req, func(req *http.Request) (*http.Response, error) { return c.misreach(req, d, api) })
		}
	})
}

// aggregated describes a request that is about to be passed on; false if it will
// not be.
func (c *Chain) aggregated(req *http.Request) (fault.Operation, bool) {
	words := strings.SplitN(strings.TrimPrefix(req.URL.Path, "/"), "/", 4)
	if len(words) < 3 || words[0] != "apis" {
		return fault.Operation{}, false
	}
	name := words[2] + "." + words[1]
	service, err := c.servers.aggregator.APIRegistrationInformers.Apiregistration().V1().APIServices().Lister().Get(name)
	if err != nil || service.Spec.Service == nil || !helper.IsAPIServiceConditionTrue(service, apiregistrationv1.Available) {
		return fault.Operation{}, false
	}
	op := fault.Operation{Point: "apiservice/" + name, Key: req.URL.Path, Verb: strings.ToLower(req.Method)}
	if info, ok := request.RequestInfoFrom(req.Context()); ok {
		op.Verb = info.Verb
		if info.IsResourceRequest {
			op.Resource, op.Namespace, op.Name = withSubresource(info.Resource+"."+info.APIGroup, info.Subresource), info.Namespace, info.Name
		}
	}
	if caller, ok := request.UserFrom(req.Context()); ok {
		op.Caller = caller.GetName()
	}
	return op, true
}

// misreach is what comes of a request that is not passed on as it should be.
func (c *Chain) misreach(req *http.Request, d fault.Decision, api http.Handler) (*http.Response, error) {
	switch d.Kind {
	case fault.Drop:
		return nil, c.injector.Lost(req.Context())
	case fault.Cancel:
		return nil, context.Canceled
	case fault.LoseReply:
		passUnheard(req, api)
	}
	return answerOf(req, d.Err())
}

// passTwice has a request handled twice, and answers with the second answer.
func (c *Chain) passTwice(w http.ResponseWriter, req *http.Request, api http.Handler) {
	first, err := copyOf(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	passUnheard(first, api)
	api.ServeHTTP(w, req)
}

// passUnheard has a request handled without anybody hearing of it. A stream ends as
// soon as it begins.
func passUnheard(req *http.Request, api http.Handler) {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	w := &unheard{header: http.Header{}, began: func() {}}
	if info, ok := request.RequestInfoFrom(ctx); ok && info.Verb == "watch" {
		w.began = cancel
	}
	api.ServeHTTP(w, req.WithContext(ctx))
}

// reachNobody answers as upstream's proxy does when this is what came of the
// request that it made.
func reachNobody(w http.ResponseWriter, req *http.Request, made proxied) {
	plain := req.Clone(req.Context())
	plain.Header.Del("Connection")
	plain.Header.Del("Upgrade")
	proxy.NewUpgradeAwareHandler(&url.URL{Scheme: "https", Path: req.URL.Path}, made, true, false, proxyResponder{}).ServeHTTP(w, plain)
}

// proxied is what comes of a request that a proxy makes, as an http.RoundTripper.
type proxied func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f proxied) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// proxyResponder says that a proxy failed as the aggregator does.
type proxyResponder struct{}

// Error implements proxy.ErrorResponder.
func (proxyResponder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}
