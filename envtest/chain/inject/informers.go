package inject

import (
	"context"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

// Informers wraps the transport of a server's own clients and asks the rules before
// an informer's request. Informers are recognized by their requests: no other client on
// the loopback watches, or lists with a resourceVersion. A watch that begins with
// all objects (sendInitialEvents) counts as a list.
func Informers(next http.RoundTripper, i *edge.Injector, resolver request.RequestInfoResolver) http.RoundTripper {
	return &transport{
		next: next, injector: i,
		describe: func(req *http.Request) (fault.Operation, bool) { return describeInformer(req, resolver) },
		answered: func(ctx context.Context, op fault.Operation) error { return synced(ctx, i, op) },
	}
}

// describeInformer describes what an informer asks; false if no informer asks.
func describeInformer(req *http.Request, resolver request.RequestInfoResolver) (fault.Operation, bool) {
	info, err := resolver.NewRequestInfo(req)
	if err != nil || !info.IsResourceRequest || req.Method != http.MethodGet || len(info.Parts) != 1 {
		return fault.Operation{}, false
	}
	verb := informerVerb(info.Verb, req.URL.Query())
	return fault.Operation{
		Point:     fault.InformerPoint + schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}.String(),
		Verb:      verb,
		Namespace: info.Namespace,
		Name:      info.Name, // that a field selector gives
	}, verb != ""
}

// informerVerb returns what an informer asks, empty if no informer asks.
func informerVerb(verb string, query url.Values) string {
	switch {
	case verb == "watch" && query.Get("sendInitialEvents") != "true":
		return "watch"
	case verb == "watch", query.Get("resourceVersion") != "":
		return "list"
	}
	return ""
}

// synced asks before an informer gets the response to its list. If that is dropped,
// the informer waits until the server stops.
func synced(ctx context.Context, i *edge.Injector, op fault.Operation) error {
	if op.Verb != "list" {
		return nil
	}
	op.Verb = "sync"
	return edge.Execute(ctx, i, func() fault.Operation { return op }, edge.Ways[error]{
		Proceed: func() error { return nil },
		Fail:    func(err error) error { return err },
	})
}
