package observe

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/client-go/kubernetes/scheme"

	"snowglobe.test/envtest/trace"
)

// encode encodes an object as upstream does.
func encode(t testing.TB, mediaType string, object runtime.Object) []byte {
	t.Helper()
	codecs := serializer.NewCodecFactory(scheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo))
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	require.True(t, ok)
	body, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, schema.GroupVersion{Version: "v1"}), object)
	require.NoError(t, err)
	return body
}

var snow = corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
	Namespace: "default", Name: "snow", UID: "u1", ResourceVersion: "5", Labels: map[string]string{"app": "snow"}, Finalizers: []string{"example.com/a"},
}, Data: map[string]string{"depth": "deep"}}

// An object is the same in any encoding.
func TestEncodings(t *testing.T) {
	want := trace.Object{Namespace: "default", Name: "snow", UID: "u1", Revision: 5, Labels: "app=snow", Finalizers: "example.com/a"}
	var digests []string
	for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR} {
		var one, list trace.Answer
		look(&one, media, encode(t, media, &snow))
		look(&list, media, encode(t, media, &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.ConfigMap{snow}}))
		assert.EqualValues(t, 9, list.Revision, media)
		assert.Equal(t, one.Objects, list.Objects, media)
		require.Len(t, one.Objects, 1, media)
		digests = append(digests, one.Objects[0].Digest)
		want.Kind, want.Digest = "ConfigMap", one.Objects[0].Digest
		assert.Equal(t, want, one.Objects[0], media)
	}
	for _, d := range digests {
		assert.NotEmpty(t, d)
		assert.Equal(t, digests[0], d)
	}
}

// Of a kind that only its server knows, protobuf tells the metadata.
func TestUnknownKind(t *testing.T) {
	want := trace.Object{Kind: "Glacier", Namespace: "default", Name: "snow", UID: "u1", Revision: 5, Labels: "app=snow", Finalizers: "example.com/a"}
	raw, err := snow.Marshal()
	require.NoError(t, err)
	var answer trace.Answer
	look(&answer, runtime.ContentTypeProtobuf, unknown(t, "Glacier", raw))
	assert.Equal(t, []trace.Object{want}, answer.Objects)

	raw, err = (&corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.ConfigMap{snow}}).Marshal()
	require.NoError(t, err)
	answer = trace.Answer{}
	look(&answer, runtime.ContentTypeProtobuf, unknown(t, "GlacierList", raw))
	assert.EqualValues(t, 9, answer.Revision)
	assert.Equal(t, []trace.Object{want}, answer.Objects)
}

// unknown is an object of a kind that no scheme here has.
func unknown(t *testing.T, kind string, raw []byte) []byte {
	t.Helper()
	body, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "example.com/v1", Kind: kind}, Raw: raw}).Marshal()
	require.NoError(t, err)
	return append([]byte(protobufPrefix), body...)
}

// A table lists metadata, of one object as of many.
func TestTable(t *testing.T) {
	var answer trace.Answer
	look(&answer, runtime.ContentTypeJSON, []byte(`{"kind":"Table","metadata":{"resourceVersion":"9"},"rows":[
		{"cells":["snow"],"object":{"kind":"PartialObjectMetadata","metadata":{"name":"snow","resourceVersion":"5"}}}]}`))
	require.Len(t, answer.Objects, 1)
	assert.EqualValues(t, 9, answer.Revision)
	assert.Equal(t, "snow", answer.Objects[0].Name)

	answer = trace.Answer{}
	look(&answer, runtime.ContentTypeJSON, []byte(`{"kind":"Table","metadata":{"resourceVersion":"9"},"rows":[{"cells":["snow"]}]}`))
	assert.Zero(t, answer.Revision, "a list whose objects are not told")
}

// FuzzLook looks into bodies of any kind.
func FuzzLook(f *testing.F) {
	media := []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR, runtime.ContentTypeYAML}
	for i, m := range media {
		f.Add(uint8(i), encode(f, m, &snow))
	}
	f.Add(uint8(0), []byte(`{"kind":"Table","rows":[{"object":{"metadata":[]}}],"metadata":{"resourceVersion":"1"}}`))
	f.Add(uint8(0), []byte(`{"kind":"Status","details":{"name":7},"reason":[]}`))
	f.Add(uint8(1), []byte(protobufPrefix))
	f.Fuzz(func(_ *testing.T, which uint8, body []byte) {
		var answer trace.Answer
		look(&answer, media[int(which)%len(media)], body)
	})
}
