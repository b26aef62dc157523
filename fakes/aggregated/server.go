package aggregated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"snowglobe.test/fakes/internal/caller"
	"snowglobe.test/fakes/stub"
	"snowglobe.test/internal/broadcast"
	"snowglobe.test/internal/pki"
)

// Server is an aggregated API server.
type Server struct {
	*stub.Server // its CA is the caBundle of an APIService

	// Requests has the rules about requests and the record of them. An answer is the handler
	// that serves the request.
	Requests *stub.Table[Request, http.Handler]

	config   Config
	proxies  *caller.Authority
	store    *store
	openAPI  http.Handler
	breaking broadcast.News // tells watches to break off
}

// Serve serves over TLS, as the aggregator wants it. The listener is the server's from
// now on, also if Serve fails.
func Serve(l net.Listener, config Config) (*Server, error) {
	s, err := newServer(config)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("serve an aggregated API: %w", err), l.Close())
	}
	hosts := config.Hosts
	if len(hosts) == 0 {
		hosts = []string{"localhost", "127.0.0.1", "::1"}
	}
	s.Server, err = stub.ServeTLS(l, http.HandlerFunc(s.serve), hosts...)
	if err != nil {
		return nil, fmt.Errorf("serve an aggregated API: %w", err)
	}
	return s, nil
}

func newServer(config Config) (*Server, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	proxies, err := caller.NewAuthority(config.FrontProxyCA)
	if err != nil {
		return nil, fmt.Errorf("FrontProxyCA: %w", err)
	}
	config.Resources = slices.Clone(config.Resources)
	config.BookmarkInterval = cmp.Or(config.BookmarkInterval, time.Minute)
	s := &Server{config: config, proxies: proxies, store: newStore()}
	s.openAPI, err = newOpenAPI(config.Resources)
	if err != nil {
		return nil, err
	}
	s.Requests = stub.NewTable(s.answer)
	return s, nil
}

// WrongCA is a certificate, in PEM, of an authority that has signed nothing. Clients
// that are given it don't trust the server.
func (s *Server) WrongCA() ([]byte, error) {
	authority, err := pki.NewAuthority("untrusted")
	if err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	return authority.CertPEM(), nil
}

// BreakWatches breaks off all watches in the middle.
func (s *Server) BreakWatches() { s.breaking.Tell() }

// Stop ends all watches, closes the listener and all connections, and waits for the
// functions of the test to return.
func (s *Server) Stop(ctx context.Context) error { return s.Interrupt(ctx) }

// Put creates an object, or replaces it with all of its fields but those of the system.
// It returns the object as it is then.
func (s *Server) Put(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk := object.GroupVersionKind()
	i := slices.IndexFunc(s.config.Resources, func(r Resource) bool {
		return r.groupVersion() == gvk.GroupVersion() && r.Kind == gvk.Kind
	})
	if i < 0 {
		return nil, fmt.Errorf("put %s %q: the server has no such kind: list it in Config.Resources", gvk, object.GetName())
	}
	resource := &s.config.Resources[i]
	if object.GetName() == "" || resource.Namespaced == (object.GetNamespace() == "") {
		return nil, fmt.Errorf("put %s %q of namespace %q: an object has a name, and a namespace if its kind is namespaced", gvk, object.GetName(), object.GetNamespace())
	}
	// As if a client had sent it, the object gets only types that JSON has.
	data, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("put %s %q: %w", gvk, object.GetName(), err)
	}
	next := &unstructured.Unstructured{}
	if err := next.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("put %s %q: %w", gvk, object.GetName(), err)
	}
	next.SetResourceVersion("")
	key := key{resource.groupResource(), object.GetNamespace(), object.GetName()}
	return s.store.change(key, false, func(current *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if current == nil {
			return created(next), nil
		}
		return updated(current, next), nil
	})
}

// Get returns an object, or false if there is none.
func (s *Server) Get(resource schema.GroupResource, namespace, name string) (*unstructured.Unstructured, bool) {
	object := s.store.get(key{resource, namespace, name})
	if object == nil {
		return nil, false
	}
	return object.DeepCopy(), true
}

// Remove deletes an object whatever its finalizers are, and reports whether there was
// one.
func (s *Server) Remove(resource schema.GroupResource, namespace, name string) bool {
	removed, _ := s.store.change(key{resource, namespace, name}, false, func(*unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return nil, nil
	})
	return removed != nil
}

// Compact forgets the history: watches and pages of lists that begin in the past are
// answered 410.
func (s *Server) Compact() { s.store.compact() }

// serve is the handler of all requests.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	request, err := newRequest(r)
	if err == nil {
		if refused := s.verifyProxy(r, request.FrontProxy); refused != nil {
			err = apierrors.NewUnauthorized(fmt.Sprintf("the aggregator is not to be trusted: %v", refused))
		}
	}
	if err != nil {
		s.Requests.Reject(request, err)
		writeFailure(w, err)
		return
	}
	answer, err := s.Requests.Serve(r.Context(), request)
	switch {
	case err != nil:
		writeFailure(w, err)
	case answer == nil:
		writeFailure(w, errors.New("the rule for this request has neither a handler nor an error: let its Answer return one"))
	default:
		answer.ServeHTTP(w, r)
	}
}

// verifyProxy returns why the aggregator that sent a request is not to be trusted. name is the one
// in its certificate.
func (s *Server) verifyProxy(r *http.Request, name string) error {
	if err := s.proxies.Verify(r); err != nil {
		return err
	}
	if names := s.config.FrontProxyNames; len(names) > 0 && !slices.Contains(names, name) {
		return fmt.Errorf("its certificate is for %q, and may be for %q", name, names)
	}
	return nil
}

// answer answers a request to which no rule gives an answer.
func (s *Server) answer(_ context.Context, request Request) (http.Handler, error) {
	switch {
	case request.Resource != "":
		return s.resource(request)
	case strings.HasPrefix(request.Path, "/openapi/"):
		return s.openAPI, nil
	case request.Discovers():
		return s.discovery(request)
	case slices.Contains([]string{"/healthz", "/livez", "/readyz"}, request.Path):
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }), nil
	default:
		return nil, notFound(request)
	}
}

func notFound(request Request) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, request.Verb, schema.GroupResource{}, "", "the server could not find the requested resource", 0, true)
}

// resource serves a request for objects.
func (s *Server) resource(request Request) (http.Handler, error) {
	i := slices.IndexFunc(s.config.Resources, func(r Resource) bool {
		return r.groupVersion() == request.groupVersion() && r.Plural == request.Resource
	})
	if i < 0 {
		return nil, notFound(request)
	}
	resource := &s.config.Resources[i]
	switch {
	case !resource.Namespaced && request.Namespace != "",
		resource.Namespaced && request.Namespace == "" && request.ObjectName != "",
		request.Subresource != "" && (request.Subresource != "status" || !resource.Status):
		return nil, notFound(request)
	}
	found := s.verb(resource, request)
	if found == nil {
		return nil, apierrors.NewMethodNotSupported(resource.groupResource(), request.Verb)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		form, err := newForm(resource, request)
		if err == nil {
			err = found(r.Context(), w, form, request)
		}
		if err != nil {
			writeFailure(w, err)
		}
	}), nil
}

// verb returns the function that serves a verb, nil if the path does not have the verb.
func (s *Server) verb(resource *Resource, request Request) func(context.Context, http.ResponseWriter, form, Request) error {
	collection, status := request.ObjectName == "", request.Subresource == "status"
	all := resource.Namespaced && request.Namespace == "" // of all namespaces
	switch {
	case request.Verb == "get":
		return s.get
	case request.Verb == "list":
		return s.list
	case request.Verb == "watch":
		return s.watch
	case request.Verb == "create" && collection && !all:
		return s.create
	case (request.Verb == "update" || request.Verb == "patch") && !collection:
		return s.update
	case request.Verb == "delete" && !status:
		return s.delete
	case request.Verb == "deletecollection" && !all:
		return s.deleteCollection
	default:
		return nil
	}
}
