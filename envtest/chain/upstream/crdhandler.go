package upstream

// Works around crdHandler (k8s.io/apiextensions-apiserver/pkg/apiserver), which is not
// exported. It serves custom resources by what it has made of a CRD until its own handler of
// the informer's events has run, and nothing tells when it has. TestCRDHandler notices when
// upstream changes.

import (
	"net/http"
	"reflect"
	"unsafe"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/server/mux"
)

//go:linkname followCRD k8s.io/apiextensions-apiserver/pkg/apiserver.(*crdHandler).createCustomResourceDefinition
func followCRD(handler unsafe.Pointer, crd any)

//go:linkname forgetCRDs k8s.io/apiextensions-apiserver/pkg/apiserver.(*crdHandler).removeDeadStorage
func forgetCRDs(handler unsafe.Pointer)

// CRDHandler serves the custom resources of an API server.
type CRDHandler struct{ pointer unsafe.Pointer }

// CRDHandlerIn returns the handler among the paths of a server of custom resources.
func CRDHandlerIn(paths *mux.PathRecorderMux) (CRDHandler, error) {
	handlers, err := unexported[map[string]http.Handler](paths, "pathToHandler")
	if err != nil {
		return CRDHandler{}, err
	}
	handler := reflect.ValueOf((*handlers)["/apis"])
	if !handler.IsValid() || handler.Type().String() != "*apiserver.crdHandler" {
		return CRDHandler{}, errChanged("what answers /apis is a %T", (*handlers)["/apis"])
	}
	return CRDHandler{pointer: handler.UnsafePointer()}, nil
}

// Follow has the handler serve a CRD that its informer has seen: requests that come when it
// has returned are not answered by an earlier one.
func (h CRDHandler) Follow(crd *apiextensionsv1.CustomResourceDefinition) { followCRD(h.pointer, crd) }

// Forget has the handler no longer serve what its informer has seen go.
func (h CRDHandler) Forget() { forgetCRDs(h.pointer) }
