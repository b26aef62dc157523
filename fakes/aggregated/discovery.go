package aggregated

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// discovery serves the pages about groups, versions and resources.
func (s *Server) discovery(request Request) (http.Handler, error) {
	if request.Method != http.MethodGet {
		return nil, notFound(request)
	}
	switch {
	case request.Path == "/apis" && wantsAggregated(request.Header.Get("Accept")):
		return page200(s.aggregated(), aggregatedType)
	case request.Path == "/apis":
		list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
		for _, name := range s.groups() {
			list.Groups = append(list.Groups, s.group(name))
		}
		return page200(list, "application/json")
	case !slices.Contains(s.groups(), request.Group):
		return nil, notFound(request)
	case request.Version == "":
		group := s.group(request.Group)
		group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		return page200(group, "application/json")
	case !slices.Contains(s.versions(request.Group), request.Version):
		return nil, notFound(request)
	default:
		return page200(s.resourceList(request), "application/json")
	}
}

// aggregatedType is the media type of aggregated discovery: one page for all groups.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// wantsAggregated reports whether a client prefers aggregated discovery.
func wantsAggregated(accept string) bool {
	for one := range strings.SplitSeq(accept, ",") {
		media, p, err := mime.ParseMediaType(one)
		if err == nil && media == "application/json" {
			if p["as"] == "" {
				return false
			}
			if p["g"] == apidiscoveryv2.GroupName && p["v"] == "v2" && p["as"] == "APIGroupDiscoveryList" {
				return true
			}
		}
	}
	return false
}

// page200 serves a page that clients may cache: it has an ETag, and a request with the same
// one in If-None-Match is answered 304.
func page200(object any, contentType string) (http.Handler, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	etag := fmt.Sprintf("%q", fmt.Sprintf("%X", sha512.Sum512(data)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", etag)
		w.Header().Set("Vary", "Accept")
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(data) // the client may be gone
	}), nil
}

// groups are the names of the groups, in the order of Config.Resources.
func (s *Server) groups() []string {
	var groups []string
	for _, r := range s.config.Resources {
		if !slices.Contains(groups, r.Group) {
			groups = append(groups, r.Group)
		}
	}
	return groups
}

// versions are those of a group, in the order of Config.Resources.
func (s *Server) versions(group string) []string {
	var versions []string
	for _, r := range s.config.Resources {
		if r.Group == group && !slices.Contains(versions, r.Version) {
			versions = append(versions, r.Version)
		}
	}
	return versions
}

func (s *Server) group(name string) metav1.APIGroup {
	group := metav1.APIGroup{Name: name}
	for _, version := range s.versions(name) {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version})
	}
	group.PreferredVersion = group.Versions[0]
	return group
}

// in returns the resources of a group and version.
func (s *Server) in(group, version string) []*Resource {
	var found []*Resource
	for i := range s.config.Resources {
		if r := &s.config.Resources[i]; r.Group == group && r.Version == version {
			found = append(found, r)
		}
	}
	return found
}

// statusVerbs are those of the status subresource.
var statusVerbs = []string{"get", "patch", "update"}

func (s *Server) resourceList(request Request) *metav1.APIResourceList {
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: request.groupVersion().String(), APIResources: []metav1.APIResource{},
	}
	for _, r := range s.in(request.Group, request.Version) {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Plural, SingularName: r.singular(), Namespaced: r.Namespaced, Kind: r.Kind,
			Verbs: r.verbs(), ShortNames: r.ShortNames, Categories: r.Categories,
		})
		if r.Status {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.Plural + "/status", Namespaced: r.Namespaced, Kind: r.Kind, Verbs: statusVerbs,
			})
		}
	}
	return list
}

func (s *Server) aggregated() *apidiscoveryv2.APIGroupDiscoveryList {
	list := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()},
		Items:    []apidiscoveryv2.APIGroupDiscovery{},
	}
	for _, name := range s.groups() {
		group := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, version := range s.versions(name) {
			v := apidiscoveryv2.APIVersionDiscovery{Version: version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			for _, r := range s.in(name, version) {
				v.Resources = append(v.Resources, r.discovered())
			}
			group.Versions = append(group.Versions, v)
		}
		list.Items = append(list.Items, group)
	}
	return list
}

func (r *Resource) discovered() apidiscoveryv2.APIResourceDiscovery {
	kind := &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
	found := apidiscoveryv2.APIResourceDiscovery{
		Resource: r.Plural, ResponseKind: kind, Scope: apidiscoveryv2.ScopeCluster, SingularResource: r.singular(),
		Verbs: r.verbs(), ShortNames: r.ShortNames, Categories: r.Categories,
	}
	if r.Namespaced {
		found.Scope = apidiscoveryv2.ScopeNamespace
	}
	if r.Status {
		found.Subresources = []apidiscoveryv2.APISubresourceDiscovery{{Subresource: "status", ResponseKind: kind, Verbs: statusVerbs}}
	}
	return found
}
