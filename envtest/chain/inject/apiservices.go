package inject

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/endpoints/request"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

// APIServices wraps the aggregator's handler and asks the rules before a request is
// proxied to an aggregated server. Upstream's proxy has no seam between its
// decision and the connection, so APIServices predicts the decision from the
// APIService that get returns. Injected errors reach the client by that proxy.
func APIServices(
	next http.Handler, i *edge.Injector, get func(name string) (*apiregistrationv1.APIService, error),
) http.Handler {
	return &apiServices{next, i, get}
}

type apiServices struct {
	next     http.Handler
	injector *edge.Injector
	get      func(name string) (*apiregistrationv1.APIService, error)
}

// ServeHTTP implements http.Handler.
func (a *apiServices) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	op, ok := fault.Operation{}, false
	if a.injector.Active() {
		op, ok = describeAggregated(req, a.get)
	}
	if !ok {
		a.next.ServeHTTP(w, req)
		return
	}
	edge.Execute(req.Context(), a.injector, func() fault.Operation { return op }, edge.Ways[done]{
		Proceed: func() done {
			a.next.ServeHTTP(w, req)
			return done{}
		},
		Discard: func() { serveDiscarding(a.next, req, op.Verb == "watch") },
		Fail: func(err error) done {
			failProxied(w, req, err)
			return done{}
		},
	})
}

// describeAggregated describes a request about to be proxied; false if it won't be.
func describeAggregated(
	req *http.Request, get func(name string) (*apiregistrationv1.APIService, error),
) (fault.Operation, bool) {
	words := strings.SplitN(strings.TrimPrefix(req.URL.Path, "/"), "/", 4)
	if len(words) < 3 || words[0] != "apis" {
		return fault.Operation{}, false
	}
	name := words[2] + "." + words[1]
	service, err := get(name)
	if err != nil || service.Spec.Service == nil || !helper.IsAPIServiceConditionTrue(service,
		apiregistrationv1.Available) {
		return fault.Operation{}, false
	}
	op := fault.Operation{Point: fault.APIServicePoint + name, Key: req.URL.Path, Verb: strings.ToLower(req.Method),
		Caller: callerOf(req)}
	if info, ok := request.RequestInfoFrom(req.Context()); ok {
		op.Verb = info.Verb
		if info.IsResourceRequest {
			op.Resource, op.Namespace, op.Name = resourceOf(info), info.Namespace, info.Name
		}
	}
	return op, true
}

// failProxied answers as upstream's proxy does when its own request fails with err.
func failProxied(w http.ResponseWriter, req *http.Request, err error) {
	plain := req.Clone(req.Context())
	plain.Header.Del("Connection")
	plain.Header.Del("Upgrade")
	failing := proxied(func(req *http.Request) (*http.Response, error) { return responseOf(req, err) })
	proxy.NewUpgradeAwareHandler(&url.URL{Scheme: "https", Path: req.URL.Path}, failing, true, false, proxyResponder{}).
		ServeHTTP(w, plain)
}

// proxied is an http.RoundTripper, as a function.
type proxied func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f proxied) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// proxyResponder reports a failed proxy as the aggregator does.
type proxyResponder struct{}

// Error implements proxy.ErrorResponder.
func (proxyResponder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}
