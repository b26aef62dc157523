package chain

import (
	"context"
	"net/http"
	"net/url"

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
	return &bentCall{
		next: next, edge: c.edge,
		describe: func(req *http.Request) (fault.Operation, bool) {
			query := req.URL.Query()
			verb := informerVerb(req, query)
			path := parseAPIPath(req.URL.Path)
			if verb == "" || path.resource == "" || path.name != "" {
				return fault.Operation{}, false
			}
			return fault.Operation{
				Point: "informer/" + path.resource, Verb: verb, Namespace: path.namespace, Name: nameSelected(query),
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

// nameSelected returns the name of the one object that a query is about, empty
// if it is about all.
func nameSelected(query url.Values) string {
	fields, err := url.QueryUnescape(query.Get("fieldSelector"))
	if err != nil {
		return ""
	}
	const byName = "metadata.name="
	if len(fields) > len(byName) && fields[:len(byName)] == byName {
		return fields[len(byName):]
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
	d, err := c.edge.At(ctx, func() fault.Operation { return op })
	if err == nil && d.Kind == fault.Drop {
		err = c.edge.Lost(ctx)
	}
	return err
}
