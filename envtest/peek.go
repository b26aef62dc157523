package envtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime"
	"regexp"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/watchframe"
)

// seen is what an answer holds.
type seen struct {
	reason   string // of a Status
	revision int64  // of a list
	objects  []trace.Object
}

func mediaOf(contentType string) string {
	media, _, _ := mime.ParseMediaType(contentType)
	return media
}

// peek looks into the body of an answer, which may be no object of an API.
func peek(media string, body []byte) seen {
	content := decode(media, body)
	if content == nil {
		return seen{}
	}
	object := &unstructured.Unstructured{Object: content}
	if object.GetKind() == "Status" {
		reason, _, _ := unstructured.NestedString(content, "reason")
		return seen{reason: reason}
	}
	items, isList := content["items"].([]any)
	if !isList || object.GetResourceVersion() == "" { // discovery has lists of what is stored nowhere
		return seen{objects: []trace.Object{objectOf(content)}}
	}
	all := seen{revision: revisionOf(object.GetResourceVersion())}
	for _, item := range items {
		if item, ok := item.(map[string]any); ok {
			o := objectOf(item)
			o.Kind = strings.TrimSuffix(object.GetKind(), "List") // items do not tell it
			all.objects = append(all.objects, o)
		}
	}
	return all
}

// peekEvent looks into a frame of a watch whose objects are of that media type.
func peekEvent(media string, frame watchframe.Frame) (kind, reason string, object trace.Object) {
	event, err := frame.Event()
	if err != nil {
		return "unreadable", "", object
	}
	content := decode(media, event.Object.Raw)
	if content == nil {
		return event.Type, "", object
	}
	if event.Type == string(watch.Error) {
		reason, _, _ = unstructured.NestedString(content, "reason")
		return event.Type, reason, object
	}
	return event.Type, "", objectOf(content)
}

// protobufs knows the kinds that are sent as protobuf.
var protobufs = func() serializer.CodecFactory {
	kinds := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(kinds))
	utilruntime.Must(apiextensionsv1.AddToScheme(kinds))
	return serializer.NewCodecFactory(kinds)
}()

// decode decodes an object in any encoding; nil if it is none.
func decode(media string, body []byte) map[string]any {
	var content map[string]any
	switch media {
	case runtime.ContentTypeProtobuf:
		return decodeProtobuf(body)
	case runtime.ContentTypeCBOR:
		if cbor.Unmarshal(body, &content) != nil {
			return nil
		}
	default:
		if json.Unmarshal(body, &content) != nil {
			return nil
		}
	}
	return content
}

func decodeProtobuf(body []byte) map[string]any {
	object, kind, err := protobufs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil
	}
	content["kind"] = kind.Kind
	return content
}

func objectOf(content map[string]any) trace.Object {
	o := unstructured.Unstructured{Object: content}
	return trace.Object{
		Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(),
		Revision: revisionOf(o.GetResourceVersion()), Digest: digest(content),
	}
}

func revisionOf(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// random is what differs from run to run by its nature, and is compared by what it is:
// UIDs, and certificates and keys, in plain text or in base64.
var random = []struct {
	text *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "uid"},
	{regexp.MustCompile(`-----BEGIN ([A-Z ]+)-----.+?-----END [A-Z ]+-----`), "PEM $1"},
	{regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/]+=*`), "PEM"},
}

// digest is equal for equal content in any encoding, but for what is random.
func digest(content map[string]any) string {
	rest := map[string]any{}
	for k, v := range content {
		if k != "kind" && k != "apiVersion" { // protobuf does not always tell them
			rest[k] = v
		}
	}
	if metadata, ok := rest["metadata"].(map[string]any); ok {
		slim := map[string]any{}
		for k, v := range metadata {
			if k != "resourceVersion" {
				slim[k] = v
			}
		}
		rest["metadata"] = slim
	}
	text, err := json.Marshal(rest)
	if err != nil {
		return ""
	}
	for _, r := range random {
		text = r.text.ReplaceAll(text, []byte(r.is))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}
