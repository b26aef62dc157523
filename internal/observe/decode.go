package observe

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// protobufs knows the kinds that are sent as protobuf.
var protobufs = func() serializer.CodecFactory {
	kinds := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(kinds))
	utilruntime.Must(apiextensionsv1.AddToScheme(kinds))
	utilruntime.Must(metav1.AddMetaToScheme(kinds))
	return serializer.NewCodecFactory(kinds)
}()

// Decode decodes an object in any encoding; nil if it is none. Protobuf can be decoded
// only if the kind is known here: of any other kind, the content is only the metadata,
// and whole is false.
func Decode(media string, body []byte) (content map[string]any, whole bool) {
	var err error
	switch {
	case media == runtime.ContentTypeProtobuf:
		return decodeProtobuf(body)
	case strings.HasSuffix(media, "cbor"):
		err = cbor.Unmarshal(body, &content)
	case strings.HasSuffix(media, "yaml"): // an apply patch, which may also be JSON
		err = yaml.Unmarshal(body, &content)
	default:
		err = json.Unmarshal(body, &content)
	}
	if err != nil {
		return nil, false
	}
	return content, true
}

func decodeProtobuf(body []byte) (content map[string]any, whole bool) {
	object, kind, err := protobufs.UniversalDeserializer().Decode(body, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return decodeMetadata(body), false
	}
	if err != nil {
		return nil, false
	}
	content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, false
	}
	content["kind"] = kind.Kind
	return content, true
}

// protobufPrefix comes before every object in protobuf.
const protobufPrefix = "k8s\x00"

// decodeMetadata decodes the metadata of an object of any kind, or those of a list's
// items. Field 1 of every message is the metadata, field 2 of a list its items.
func decodeMetadata(body []byte) map[string]any {
	unknown := &runtime.Unknown{}
	if unknown.Unmarshal(body[len(protobufPrefix):]) != nil {
		return nil
	}
	var object runtime.Object
	var err error
	if strings.HasSuffix(unknown.Kind, "List") {
		list := &metav1.PartialObjectMetadataList{}
		object, err = list, list.Unmarshal(unknown.Raw)
	} else {
		one := &metav1.PartialObjectMetadata{}
		object, err = one, one.Unmarshal(unknown.Raw)
	}
	if err != nil {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil
	}
	content["kind"] = unknown.Kind
	return content
}
