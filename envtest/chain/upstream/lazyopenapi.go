package upstream

// Works around specProxier (k8s.io/kube-aggregator/pkg/controllers/openapiv3/aggregator), which asks for the
// index of OpenAPI v3 while a server is assembled. TestLazyOpenAPI shows what for, and TestPolicyAtOnce and
// TestSchemasOfConfigurations of envtest fail when somebody gets less than upstream gives.

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/emicklei/go-restful/v3"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/handler3"
)

const openAPIv3Path = "/openapi/v3"

// LazyOpenAPI serves the OpenAPI v3 documents of the kube-apiserver, and makes them when the first
// client asks the aggregator for any. The aggregator asks for the index at boot and again every
// second, and so does the plugin of mutating policies by the server's own client. It has a hash of
// each document, so that all would have to be made. Until then these two get it without hashes: a
// URL without a hash is that of the document as it is now. The zero value is ready.
type LazyOpenAPI struct {
	wanted atomic.Bool
	fetch  sync.Once
}

// Install registers the documents that make returns with the kube-apiserver's own paths. They are named
// after the paths of its services.
func (d *LazyOpenAPI) Install(
	mux *mux.PathRecorderMux, services []*restful.WebService, make func() *handler3.OpenAPIService,
) {
	service, withoutHashes := sync.OnceValue(make), indexOf(services)
	mux.HandleFunc(openAPIv3Path, func(w http.ResponseWriter, r *http.Request) {
		if d.wanted.Load() {
			service().HandleDiscovery(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(withoutHashes) // the client may be gone
	})
	mux.HandlePrefix(openAPIv3Path+"/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service().HandleGroupVersion(w, r)
	}))
}

// indexOf is the index of the documents of services, which are named after their paths.
func indexOf(services []*restful.WebService) []byte {
	index := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for _, service := range services {
		path := service.RootPath()
		index.Paths[path[1:]] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: openAPIv3Path + path}
	}
	encoded, err := json.Marshal(index)
	utilruntime.Must(err) // of strings
	return encoded
}

// BeforeAggregator wraps the handlers of the aggregator: before it answers the first client that asks for
// documents, fetch lets it ask for the index with hashes.
func (d *LazyOpenAPI) BeforeAggregator(next http.Handler, fetch func() error) http.Handler {
	return &documentsFirst{d, next, fetch}
}

type documentsFirst struct {
	*LazyOpenAPI
	next      http.Handler
	fetchThem func() error
}

// ServeHTTP implements http.Handler.
func (d *documentsFirst) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.asksFor(r) {
		d.fetch.Do(func() {
			d.wanted.Store(true)
			if err := d.fetchThem(); err != nil { // it tries again in a second
				klog.ErrorS(err, "The aggregator could not fetch the OpenAPI v3 documents")
			}
		})
	}
	d.next.ServeHTTP(w, r)
}

func (d *LazyOpenAPI) asksFor(r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, openAPIv3Path) {
		return false
	}
	who, ok := request.UserFrom(r.Context())
	return r.URL.Path != openAPIv3Path || !ok || who.GetName() != user.APIServerUser
}
