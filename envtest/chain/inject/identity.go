package inject

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// verbOf is upstream's verb, or the method in lower case if upstream has none.
func verbOf(req *http.Request, info *request.RequestInfo) string {
	if info.Verb == "" {
		return strings.ToLower(req.Method)
	}
	return info.Verb
}

// resourceOf is a request's resource, such as "deployments.apps/scale", or empty.
func resourceOf(info *request.RequestInfo) string {
	if !info.IsResourceRequest {
		return ""
	}
	return withSubresource(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Subresource)
}

// withSubresource is a resource as rules name it, such as "pods/status".
func withSubresource(resource schema.GroupResource, subresource string) string {
	if subresource == "" {
		return resource.String()
	}
	return resource.String() + "/" + subresource
}

// callerOf is the user that upstream's filters have found, empty if none.
func callerOf(req *http.Request) string {
	if user, ok := request.UserFrom(req.Context()); ok {
		return user.GetName()
	}
	return ""
}

// keyOf is the path of a request with the selectors of its query, which distinguish
// two informers of one caller. The rest of a query differs from run to run, or does
// not say what is asked for.
func keyOf(req *http.Request, info *request.RequestInfo) string {
	query, kept := req.URL.Query(), url.Values{}
	for _, name := range []string{"fieldSelector", "labelSelector"} {
		if value := query.Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	if len(kept) == 0 {
		return info.Path
	}
	return info.Path + "?" + kept.Encode()
}

// maxNamedBodyBytes bounds how much of a body is read for the name in it.
const maxNamedBodyBytes = 4 << 20

// nameInBody returns the name of the object in a create's body, which it leaves
// unread; empty if the server is to generate the name or the body cannot be read.
func nameInBody(req *http.Request) string {
	if req.Body == nil {
		return ""
	}
	body, _ := io.ReadAll(io.LimitReader(req.Body, maxNamedBodyBytes)) // whoever reads on finds the error again
	unread(req, bytes.NewReader(body))
	mediaType, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type"))
	object, _ := metadataOf(mediaType, body) // what can't be read has no name, and is for the server to refuse
	return object.Name
}

// metadataOf reads the metadata of an encoded object; of a table, its first row's.
func metadataOf(mediaType string, raw []byte) (metav1.PartialObjectMetadata, error) {
	var object struct {
		metav1.PartialObjectMetadata
		Rows []metav1.TableRow `json:"rows"`
	}
	var err error
	switch mediaType {
	case runtime.ContentTypeProtobuf:
		err = unmarshalProtobuf(raw, &object.PartialObjectMetadata)
	case runtime.ContentTypeCBOR:
		err = cbor.Unmarshal(raw, &object)
	default:
		err = json.Unmarshal(raw, &object)
	}
	if err == nil && object.Kind == "Table" && len(object.Rows) > 0 {
		return metadataOf(mediaType, object.Rows[0].Object.Raw)
	}
	return object.PartialObjectMetadata, err
}

// unmarshalProtobuf reads the metadata, which is the first field of every object.
func unmarshalProtobuf(raw []byte, object *metav1.PartialObjectMetadata) error {
	raw, ok := bytes.CutPrefix(raw, []byte("k8s\x00"))
	if !ok {
		return errors.New("not an object in protobuf")
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(raw); err != nil {
		return err
	}
	return object.Unmarshal(unknown.Raw)
}
