package chain

import (
	"context"
	"net/http"
	"net/url"

	genericapiserver "k8s.io/apiserver/pkg/server"

	"snowglobe.test/envtest/fault"
)

// What an informer is about to do, as rules name it.
const (
	informerList  = "list"
	informerWatch = "watch"
	informerSync  = "sync"
)

// bendInformers puts the rules between the server's informers and the server.
// An informer is known by what it asks: it alone watches, and lists from a
// resource version on. When it asks for everything is its list, be it a list or
// a watch that begins with all there is.
func (c *Chain) bendInformers(next http.RoundTripper) http.RoundTripper {
	infos := genericapiserver.NewRequestInfoResolver(c.generic.config)
	return &bentCall{
		next: next, edge: c.injector,
		describe: func(req *http.Request) (fault.Operation, bool) {
			verb := informerVerb(req, req.URL.Query())
			if verb == "" {
				return fault.Operation{}, false
			}
			info, err := infos.NewRequestInfo(req)
			if err != nil || !info.IsResourceRequest || info.Verb == "get" {
				return fault.Operation{}, false
			}
			return fault.Operation{
				Point: "informer/" + requestedResource(info), Verb: verb, Namespace: info.Namespace, Name: info.Name, // that is selected
			}, true
		},
		answered: c.synced,
	}
}

// informerVerb returns what an informer asks, empty if no informer asks.
func informerVerb(req *http.Request, query url.Values) string {
	watches := query.Get("watch") == "true" || query.Get("watch") == "1"
	switch {
	case req.Method != http.MethodGet:
		return ""
	case watches && query.Get("sendInitialEvents") == "true":
		return informerList
	case watches:
		return informerWatch
	case query.Get("resourceVersion") != "":
		return informerList
	}
	return ""
}

// synced asks before an informer gets the answer to its list. One that is
// dropped leaves it without, until the server stops.
func (c *Chain) synced(ctx context.Context, op fault.Operation) error {
	if op.Verb != informerList {
		return nil
	}
	op.Verb = informerSync
	d, err := c.injector.At(ctx, func() fault.Operation { return op })
	if err == nil && d.Kind == fault.Drop {
		err = c.injector.Lost(ctx)
	}
	return err
}
