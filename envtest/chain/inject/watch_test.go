package inject

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/client-go/kubernetes/scheme"

	"snowglobe.test/envtest/memnet"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/watchframe"
)

// codecs are upstream's, with CBOR as behind its feature gate.
var codecs = serializer.NewCodecFactory(scheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo))

// watchEncodings are those of watches, by their Content-Type.
var watchEncodings = map[string]string{
	"application/json": runtime.ContentTypeJSON,
	"application/vnd.kubernetes.protobuf;stream=watch": runtime.ContentTypeProtobuf,
	"application/cbor-seq":                             runtime.ContentTypeCBOR,
}

// frameOf is an event as upstream writes it.
func frameOf(t *testing.T, mediaType, kind string, object runtime.Object) []byte {
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	require.True(t, ok)
	version := schema.GroupVersion{Version: "v1"}
	raw, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, version), object)
	require.NoError(t, err)
	event, err := runtime.Encode(codecs.EncoderForVersion(info.StreamSerializer.Serializer, version),
		&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}})
	require.NoError(t, err)
	var frame bytes.Buffer
	_, err = info.StreamSerializer.Framer.NewFrameWriter(&frame).Write(event)
	require.NoError(t, err)
	return frame.Bytes()
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// seen is what a client sees of the events "a" and "b", each flushed, and how its
// watch ends.
func seen(t *testing.T, contentType string, compress bool, rules ...string) (events []string, err error) {
	mediaType := watchEncodings[contentType]
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		if compress {
			w.Header().Set("Content-Encoding", "gzip")
		}
		w.WriteHeader(http.StatusOK)
		for _, name := range []string{"a", "b"} {
			frame := frameOf(t, mediaType, "ADDED", configMap(name))
			if compress {
				frame = compressed(frame)
			}
			for _, piece := range [][]byte{frame[:5], frame[5:]} {
				_, _ = w.Write(piece)
			}
			w.(http.Flusher).Flush()
		}
	})
	config := configForTest()
	config.Serializer = codecs
	requests := NewRequests(trace.NewRecorder("test", 0), injectorFor(t, rules...))
	transport := &memnet.Transport{Handler: requests.Outermost(authenticated(requests.HandlerChain(plainChain)(api, config)))}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cluster/api/v1/configmaps?watch=true", nil)
	require.NoError(t, err)
	response, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	body := io.Reader(response.Body)
	if compress {
		body, err = gzip.NewReader(response.Body)
		if errors.Is(err, io.EOF) {
			return nil, nil // not one member
		}
		require.NoError(t, err)
	}
	splitter := watchframe.NewSplitter(contentType)
	stream, err := io.ReadAll(body)
	require.NoError(t, splitter.Add(stream, func(frame watchframe.Frame) error {
		event, eventErr := frame.Event()
		require.NoError(t, eventErr)
		object, eventErr := runtime.Decode(codecs.UniversalDeserializer(), event.Object.Raw)
		require.NoError(t, eventErr)
		text := strings.ToLower(event.Type) + " "
		switch object := object.(type) {
		case *corev1.ConfigMap:
			text += object.Name
		case *metav1.Status:
			text += string(object.Reason)
		}
		events = append(events, text)
		return nil
	}))
	assert.Empty(t, splitter.Rest())
	return events, err
}

// TestWatch is what each action does to the events of a watch, in each encoding.
func TestWatch(t *testing.T) {
	for rule, want := range map[string][]string{
		"":                              {"added a", "added b"},
		"delay watch/configmaps by=1ms": {"added a", "added b"},
		"fail watch/configmaps name=default/b with=410": {"added a", "error Expired"},
		"drop watch/configmaps name=default/a":          {"added b"},
		"duplicate watch/configmaps verb=added nth=2":   {"added a", "added b", "added b"},
		"cancel watch/configmaps name=default/b":        {"added a"},
		"drop watch/configmaps caller=jane":             nil,
		"drop watch/pods optional":                      {"added a", "added b"},
		"drop http/watch phase=stream":                  {"added a"},
	} {
		for contentType, mediaType := range watchEncodings {
			for _, compress := range []bool{false, true} {
				name := mediaType
				if compress {
					name += " gzip"
				}
				t.Run(rule+"/"+name, func(t *testing.T) {
					var rules []string
					if rule != "" {
						rules = append(rules, rule)
					}
					events, err := seen(t, contentType, compress, rules...)
					require.NoError(t, err)
					assert.Equal(t, want, events)
				})
			}
		}
	}
}

// TestBrokenWatch breaks the connection of a watch before its second event.
func TestBrokenWatch(t *testing.T) {
	for contentType := range watchEncodings {
		for _, rule := range []string{"fail watch/configmaps nth=2 with=eof", "crash watch/configmaps nth=2"} {
			events, err := seen(t, contentType, false, rule)
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
			assert.Equal(t, []string{"added a"}, events)
		}
	}
}

// TestRowsOfTables finds the object of an event that is a table.
func TestRowsOfTables(t *testing.T) {
	raw, err := runtime.Encode(codecs.LegacyCodec(corev1.SchemeGroupVersion), configMap("a"))
	require.NoError(t, err)
	table := `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"rows":[{"cells":["a"],"object":` + strings.TrimSpace(string(raw)) + `}]}`
	object, err := metadataOf(runtime.ContentTypeJSON, []byte(table))
	require.NoError(t, err)
	assert.Equal(t, "default/a", object.Namespace+"/"+object.Name)
}

// TestNameInBody reads the name of what is created, and leaves the body as it was.
func TestNameInBody(t *testing.T) {
	for _, mediaType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR, runtime.ContentTypeYAML} {
		info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
		require.True(t, ok)
		body, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), configMap("a"))
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", mediaType+"; charset=utf-8")
		want := "a"
		if mediaType == runtime.ContentTypeYAML {
			want = "" // is for the server to read
		}
		assert.Equal(t, want, nameInBody(req), mediaType)
		left, err := io.ReadAll(req.Body)
		require.NoError(t, err)
		assert.Equal(t, body, left)
	}
}
