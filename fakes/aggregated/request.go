package aggregated

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"snowglobe.test/fakes/internal/serving"
)

// Request is what somebody asks of the server.
type Request struct {
	Method string
	Path   string
	Query  url.Values
	Header http.Header
	Body   []byte

	// Verb is that of the Kubernetes API for resources, such as "list" or "watch", and
	// the method in lower case for all else.
	Verb                                                         string
	Group, Version, Resource, Subresource, Namespace, ObjectName string

	// User, UID, Groups and Extra are of whom the aggregator acts for, as it says.
	User, UID string
	Groups    []string
	Extra     map[string][]string
	// FrontProxy is the common name of the aggregator's certificate, if it shows one.
	FrontProxy string
}

// Discovers reports whether a request is about what the server has, and not about
// objects.
func (r Request) Discovers() bool {
	return r.Resource == "" && (r.Path == "/apis" || strings.HasPrefix(r.Path, "/apis/") || strings.HasPrefix(r.Path, "/openapi/"))
}

func (r Request) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

// maxBodyBytes is kube-apiserver's limit.
const maxBodyBytes = 3 << 20

// newRequest reads a request, the body included.
func newRequest(r *http.Request) (Request, error) {
	request := Request{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(),
		Verb:       strings.ToLower(r.Method),
		User:       r.Header.Get("X-Remote-User"),
		UID:        r.Header.Get("X-Remote-Uid"),
		Groups:     r.Header.Values("X-Remote-Group"),
		Extra:      extra(r.Header),
		FrontProxy: serving.CallerOf(r).User,
	}
	request.place()
	var err error
	request.Body, err = io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBodyBytes))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return request, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBodyBytes))
	}
	return request, err
}

// extra returns what X-Remote-Extra headers say, by the names after that.
func extra(header http.Header) map[string][]string {
	const prefix = "X-Remote-Extra-"
	found := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if after, ok := strings.CutPrefix(name, prefix); ok {
			key, err := url.PathUnescape(strings.ToLower(after))
			if err != nil {
				key = strings.ToLower(after)
			}
			found[key] = header[name]
		}
	}
	return found
}

// place takes the parts of a path like
// /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE.
func (r *Request) place() {
	parts := strings.Split(strings.Trim(r.Path, "/"), "/")
	if parts[0] != "apis" {
		return
	}
	next := func() string {
		if len(parts) == 0 {
			return ""
		}
		part := parts[0]
		parts = parts[1:]
		return part
	}
	next()
	r.Group, r.Version = next(), next()
	if len(parts) > 2 && parts[0] == "namespaces" {
		next()
		r.Namespace = next()
	}
	r.Resource, r.ObjectName, r.Subresource = next(), next(), next()
	if len(parts) > 0 {
		r.Group, r.Version, r.Namespace, r.Resource, r.ObjectName, r.Subresource = "", "", "", "", "", ""
	}
	if r.Resource != "" {
		r.Verb = r.verb()
	}
}

func (r *Request) verb() string {
	watching := r.Query.Get("watch")
	switch {
	case r.Method == http.MethodGet && watching != "" && watching != "0" && watching != "false":
		return "watch"
	case r.Method == http.MethodGet && r.ObjectName == "":
		return "list"
	case r.Method == http.MethodPost:
		return "create"
	case r.Method == http.MethodPut:
		return "update"
	case r.Method == http.MethodDelete && r.ObjectName == "":
		return "deletecollection"
	default:
		return strings.ToLower(r.Method)
	}
}
