package bootstrap

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
)

var (
	thenTime = metav1.NewTime(time.Unix(1_000_000_000, 0))
	nowTime  = metav1.NewTime(time.Unix(1_700_000_000, 0))
)

func oldMetadata() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "a", UID: "old", CreationTimestamp: thenTime, Labels: map[string]string{"b": "c"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "d", Operation: "Update", Time: &thenTime}},
	}
}

// TestRenew changes what says when and as which object something came to be, and not a byte else.
func TestRenew(t *testing.T) {
	for name, test := range map[string]struct {
		object metav1.Object
		codecs runtime.NegotiatedSerializer
		media  string
		of     schema.GroupVersion
	}{
		"protobuf": {
			object: &rbacv1.ClusterRole{ObjectMeta: oldMetadata(), Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}},
			codecs: scheme.Codecs, media: runtime.ContentTypeProtobuf, of: rbacv1.SchemeGroupVersion,
		},
		"json": {
			object: &apiregistrationv1.APIService{
				ObjectMeta: oldMetadata(), Spec: apiregistrationv1.APIServiceSpec{Group: "g", Version: "v1"},
			},
			codecs: aggregatorscheme.Codecs, media: runtime.ContentTypeJSON, of: apiregistrationv1.SchemeGroupVersion,
		},
	} {
		t.Run(name, func(t *testing.T) {
			info, ok := runtime.SerializerInfoForMediaType(test.codecs.SupportedMediaTypes(), test.media)
			require.True(t, ok)
			encode := func() []byte {
				var to bytes.Buffer
				encoder := test.codecs.EncoderForVersion(info.Serializer, test.of)
				require.NoError(t, encoder.Encode(test.object.(runtime.Object), &to))
				return to.Bytes()
			}
			renewed, err := renew(encode(), nowTime)
			require.NoError(t, err)
			decoded, _, err := test.codecs.DecoderToVersion(info.Serializer, test.of).Decode(renewed, nil, nil)
			require.NoError(t, err)
			uid := decoded.(metav1.Object).GetUID()
			assert.Len(t, string(uid), 36)
			test.object.SetUID(uid)
			test.object.SetCreationTimestamp(nowTime)
			test.object.GetManagedFields()[0].Time = &nowTime
			assert.Equal(t, string(encode()), string(renewed))
		})
	}
	_, err := renew([]byte("k8s\x00\x12\x02\x08\x01"), nowTime)
	assert.ErrorContains(t, err, "it does not begin with metadata, but with field 1")
}
