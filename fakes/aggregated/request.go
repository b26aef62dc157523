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
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"snowglobe.test/fakes/internal/caller"
)

// Request is what a client asks of the server.
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
		FrontProxy: caller.Of(r).User,
	}
	request.place(r)
	var err error
	request.Body, err = io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBodyBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
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

// infos tells verbs and the parts of paths as kube-apiserver does.
var infos = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("apis")}

// place takes the verb and the parts of a path of objects, or the group and the version of
// one of discovery. A name is that of the path, and not one of a field selector.
func (r *Request) place(asked *http.Request) {
	info, err := infos.NewRequestInfo(asked)
	switch parts := strings.Split(strings.Trim(r.Path, "/"), "/"); {
	case err != nil || len(info.Parts) > 3:
	case info.IsResourceRequest:
		r.Verb, r.Group, r.Version = info.Verb, info.APIGroup, info.APIVersion
		r.Namespace, r.Resource, r.Subresource = info.Namespace, info.Resource, info.Subresource
		if len(info.Parts) > 1 {
			r.ObjectName = info.Parts[1]
		}
	case parts[0] == "apis":
		parts = append(parts, "", "")
		r.Group, r.Version = parts[1], parts[2]
	}
}
