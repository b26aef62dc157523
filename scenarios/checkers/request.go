package checkers

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// The verbs of requests that say something about objects.
const (
	verbGet              = "get"
	verbList             = "list"
	verbWatch            = "watch"
	verbCreate           = "create"
	verbUpdate           = "update"
	verbPatch            = "patch"
	verbDelete           = "delete"
	verbDeleteCollection = "deletecollection"
)

// request is what a request asks for, by its method and URI.
type request struct {
	verb        string
	resource    resource
	version     string
	namespace   string
	name        string
	subresource string
	query       url.Values
}

// resource is a type of objects, whatever version of it is asked for: revisions of
// one resource can be compared.
type resource struct{ group, name string }

func (r resource) String() string {
	return schema.GroupResource{Group: r.group, Resource: r.name}.String()
}

// key names an object, or several that had the name one after another.
type key struct {
	resource
	namespace, object string
}

func (k key) String() string {
	return k.resource.String() + " " + strings.TrimPrefix(k.namespace+"/"+k.object, "/")
}

// requestInfos reads requests as an API server does.
var requestInfos = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// parseRequest returns what is asked for, false if it is about no resource.
func parseRequest(method, uri string) (request, bool) {
	u, err := url.ParseRequestURI(uri)
	if err != nil || method == http.MethodHead {
		return request{}, false
	}
	info, err := requestInfos.NewRequestInfo(&http.Request{Method: method, URL: u})
	if err != nil || !info.IsResourceRequest {
		return request{}, false
	}
	r := request{
		verb: info.Verb, resource: resource{info.APIGroup, info.Resource}, version: info.APIVersion,
		namespace: info.Namespace, subresource: info.Subresource, query: u.Query(),
	}
	if len(info.Parts) > 1 { // info.Name may be that of a selector
		r.name = info.Parts[1]
	}
	if r.resource == (resource{"", "namespaces"}) {
		r.namespace = "" // of which info says that it is in itself
	}
	return r, r.verb != ""
}

// String is the request as kubectl's users know it.
func (r request) String() string {
	what := r.resource.String()
	if r.subresource != "" {
		what += "/" + r.subresource
	}
	return strings.TrimSpace(r.verb + " " + what + " " + strings.Trim(r.namespace+"/"+r.name, "/"))
}

// key returns which object is asked for; its name may be empty.
func (r request) key() key { return key{r.resource, r.namespace, r.name} }

// freshness is what a read may be answered with.
type freshness int

const (
	consistent freshness = iota // the newest there is
	cached                      // what a cache has, possibly at least a revision
	exact                       // one revision only
	continued                   // the revision of an earlier page
)

// freshness returns how new the answer to a read must be, and the revision it names.
// The table is "Semantics for get and list" of the API concepts page.
func (r request) freshness() (freshness, int64) {
	version, match := r.query.Get("resourceVersion"), r.query.Get("resourceVersionMatch")
	revision, err := strconv.ParseInt(version, 10, 64)
	switch {
	case r.query.Get("continue") != "":
		return continued, 0
	case match == string(metav1.ResourceVersionMatchExact):
		return exact, revision
	case version == "":
		return consistent, 0
	case err == nil && revision > 0 && match == "" && r.verb == verbList && r.limited():
		return exact, revision // as it was before there was resourceVersionMatch
	}
	return cached, revision
}

func (r request) limited() bool {
	limit, err := strconv.ParseInt(r.query.Get("limit"), 10, 64)
	return err == nil && limit > 0
}

// flag reports whether a parameter is set and true.
func (r request) flag(name string) bool {
	value, err := strconv.ParseBool(r.query.Get(name))
	return err == nil && value
}
