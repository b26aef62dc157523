package checkers

import (
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if r.group == "" {
		return r.name
	}
	return r.name + "." + r.group
}

// key names an object, or several that had the name one after another.
type key struct {
	resource
	namespace, object string
}

func (k key) String() string {
	if k.namespace == "" {
		return k.resource.String() + " " + k.object
	}
	return k.resource.String() + " " + k.namespace + "/" + k.object
}

// parseRequest returns what is asked for, false if it is about no resource.
func parseRequest(method, uri string) (request, bool) {
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return request{}, false
	}
	r := request{query: u.Query()}
	words := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case words[0] == "api" && len(words) >= 3:
		r.version, words = words[1], words[2:]
	case words[0] == "apis" && len(words) >= 4:
		r.resource.group, r.version, words = words[1], words[2], words[3:]
	default:
		return request{}, false
	}
	watch := r.query.Get("watch")
	watches := watch == "true" || watch == "1"
	if words[0] == "watch" { // the old form
		watches, words = true, words[1:]
	}
	if !r.place(words) {
		return request{}, false
	}
	r.verb = verbOf(method, r.name != "", watches)
	return r, r.verb != ""
}

// place reads the path below the version.
func (r *request) place(words []string) bool {
	namespaced := len(words) > 2 && words[0] == "namespaces" && (words[2] != "status" && words[2] != "finalize")
	if namespaced {
		r.namespace, words = words[1], words[2:]
	}
	if len(words) == 0 || words[0] == "" {
		return false
	}
	r.resource.name = words[0]
	if len(words) > 1 {
		r.name = words[1]
	}
	r.subresource = strings.Join(words[min(2, len(words)):], "/")
	return true
}

func verbOf(method string, named, watches bool) string {
	switch {
	case method == "GET" && watches:
		return verbWatch
	case method == "GET" && named:
		return verbGet
	case method == "GET":
		return verbList
	case method == "POST":
		return verbCreate
	case method == "PUT":
		return verbUpdate
	case method == "PATCH":
		return verbPatch
	case method == "DELETE" && named:
		return verbDelete
	case method == "DELETE":
		return verbDeleteCollection
	}
	return ""
}

// String is the request as kubectl's users know it.
func (r request) String() string {
	place := r.namespace
	if r.name != "" {
		place = strings.TrimPrefix(r.namespace+"/"+r.name, "/")
	}
	what := r.resource.String()
	if r.subresource != "" {
		what += "/" + r.subresource
	}
	return strings.TrimSpace(r.verb + " " + what + " " + place)
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
