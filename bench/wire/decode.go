package wire

import (
	"fmt"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/kubernetes/scheme"
)

// Decode decodes an object that may be of any kind, a Status too. Only of kinds that are built in
// is there protobuf.
func Decode(mediaType string, encoded []byte) (runtime.Object, error) {
	switch mediaType {
	case runtime.ContentTypeProtobuf:
		return runtime.Decode(scheme.Codecs.UniversalDeserializer(), encoded)
	case runtime.ContentTypeCBOR, runtime.ContentTypeCBORSequence:
		object := &unstructured.Unstructured{}
		return object, cbor.Unmarshal(encoded, &object.Object)
	}
	return runtime.Decode(unstructured.UnstructuredJSONScheme, encoded)
}

// Refusal is the error of an answer that is not what was asked for.
func Refusal(response *http.Response, body []byte) error {
	contentType := response.Header.Get("Content-Type")
	if mediaType, _, err := mime.ParseMediaType(contentType); err == nil &&
		response.StatusCode >= http.StatusBadRequest {
		if status, err := Decode(mediaType, body); err == nil {
			return apierrors.FromObject(status)
		}
	}
	return fmt.Errorf("the server answers %s, in %q", response.Status, contentType)
}
