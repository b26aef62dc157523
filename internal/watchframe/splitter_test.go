package watchframe

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	cbordirect "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/client-go/kubernetes/scheme"
)

// contentTypes are what upstream's watches say.
var contentTypes = map[string]string{
	runtime.ContentTypeJSON:     "application/json",
	runtime.ContentTypeProtobuf: "application/vnd.kubernetes.protobuf;stream=watch",
	runtime.ContentTypeCBOR:     "application/cbor-seq",
}

// TestSplitter writes the events of a watch with upstream's encoders and framers,
// cut at random places: each is found, and nothing is lost. Bytes that are no
// event pass as well.
func TestSplitter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for mediaType := range contentTypes {
		for _, noise := range []string{
			"", "{\"type\":\"ADDED\",\"object\":null}\n\n{", "\x00\x00\x00\x02no", "\x00\x00\x00\x00", "\xff\xff\xff\xff", "no\n\x00", "{\n\"type\":\"ADDED\"}\n{}",
		} {
			for range 50 {
				showFrames(t, mediaType, noise, func(left int) int { return random.IntN(left + 1) })
			}
			showFrames(t, mediaType, noise, func(int) int { return 1 })
			showFrames(t, mediaType, noise, func(left int) int { return left })
		}
	}
}

// showFrames cuts a stream of events and noise into pieces.
func showFrames(t *testing.T, mediaType, noise string, cut func(left int) int) {
	t.Helper()
	var stream []byte
	var want []string
	for _, name := range []string{"a", "b", strings.Repeat("c", 300)} {
		stream = append(stream, encodedEvent(t, mediaType, name)...)
		want = append(want, "MODIFIED "+name)
	}
	splitter := NewSplitter(contentTypes[mediaType])
	require.NotNil(t, splitter)
	assert.Equal(t, mediaType, splitter.MediaType())
	whole := append(bytes.Clone(stream), noise...)
	var found []string
	var passed []byte
	for left := whole; len(left) > 0; {
		n := cut(len(left))
		require.NoError(t, splitter.Add(left[:n], func(frame Frame) error {
			passed = append(passed, frame.Wire...)
			event, err := frame.Event()
			if len(passed) <= len(stream) {
				require.NoError(t, err)
				found = append(found, event.Type+" "+nameIn(t, event))
			}
			return nil
		}))
		left = left[n:]
	}
	assert.Equal(t, whole, append(passed, splitter.Rest()...))
	assert.Equal(t, want, found)
}

// codecs are upstream's, with CBOR as behind its feature gate.
var codecs = serializer.NewCodecFactory(scheme.Scheme, serializer.WithSerializer(cbor.NewSerializerInfo))

// encodedEvent is the frame of an event as upstream writes it.
func encodedEvent(t testing.TB, mediaType, name string) []byte {
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), mediaType)
	require.True(t, ok)
	version := schema.GroupVersion{Version: "v1"}
	object, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, version),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"text": "two\nlines"}})
	require.NoError(t, err)
	event, err := runtime.Encode(codecs.EncoderForVersion(info.StreamSerializer.Serializer, version),
		&metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: object}})
	require.NoError(t, err)
	var frame bytes.Buffer
	_, err = info.StreamSerializer.Framer.NewFrameWriter(&frame).Write(event)
	require.NoError(t, err)
	return frame.Bytes()
}

func nameIn(t *testing.T, event *metav1.WatchEvent) string {
	object, err := runtime.Decode(codecs.UniversalDeserializer(), event.Object.Raw)
	require.NoError(t, err)
	return object.(*corev1.ConfigMap).Name
}

// TestWholeFrames leaves out pieces that the reader does not look into.
func TestWholeFrames(t *testing.T) {
	event := encodedEvent(t, runtime.ContentTypeJSON, "a")
	splitter := NewSplitter("application/json")
	assert.True(t, splitter.WholeFrames(append(bytes.Clone(event), event...)))
	assert.False(t, splitter.WholeFrames(event[:10]))
	found := 0
	count := func(Frame) error { found++; return nil }
	require.NoError(t, splitter.Add(event[:10], count))
	assert.False(t, splitter.WholeFrames(event[10:]))
	require.NoError(t, splitter.Add(event[10:], count))
	assert.True(t, splitter.WholeFrames(event))
	assert.Equal(t, 1, found)
	assert.False(t, NewSplitter(contentTypes[runtime.ContentTypeProtobuf]).WholeFrames([]byte("\x00\x00\x00\x01\n")))

	item := encodedEvent(t, runtime.ContentTypeCBOR, "a")
	cbor := NewSplitter(contentTypes[runtime.ContentTypeCBOR])
	assert.True(t, cbor.WholeFrames(item))
	assert.False(t, cbor.WholeFrames(item[:10]))
	assert.Zero(t, testing.AllocsPerRun(10, func() { cbor.WholeFrames(item) }), "a watch without rules costs nothing")
}

// TestNeverEnding passes on the beginning of a message that no client would read to its end.
func TestNeverEnding(t *testing.T) {
	splitter := NewSplitter(contentTypes[runtime.ContentTypeProtobuf])
	require.NoError(t, splitter.Add([]byte("\xff\xff\xff\xffno"), func(frame Frame) error {
		_, err := frame.Event()
		assert.Error(t, err)
		return nil
	}))
	assert.Empty(t, splitter.Rest())
}

// TestLargeItems finds CBOR items that are beyond the usual limits of its library, but not upstream's.
func TestLargeItems(t *testing.T) {
	deep := map[string]any{}
	for range 1000 {
		deep = map[string]any{"in": deep}
	}
	pairs := map[string]any{}
	for i := range 200_000 {
		pairs[strconv.Itoa(i)] = i
	}
	for name, value := range map[string]any{"deep": deep, "elements": make([]int, 200_000), "pairs": pairs} {
		item, err := cbordirect.Marshal(value)
		require.NoError(t, err)
		splitter, found := NewSplitter(contentTypes[runtime.ContentTypeCBOR]), 0
		for part := range slices.Chunk(item, len(item)/2+1) {
			require.NoError(t, splitter.Add(part, func(frame Frame) error {
				found++
				require.Equal(t, len(item), len(frame.Wire), name)
				require.NotNil(t, frame.body, name)
				return nil
			}))
		}
		assert.Equal(t, 1, found, name)
	}
}

func TestNotAWatch(t *testing.T) {
	for _, contentType := range []string{"", "text/plain", "application/yaml", "application/cbor", ";"} {
		assert.Nil(t, NewSplitter(contentType), contentType)
	}
}

// FuzzSplitter gets the same frames of a stream however it is cut, and loses
// nothing.
func FuzzSplitter(f *testing.F) {
	types := slices.Sorted(maps.Keys(contentTypes))
	for i, mediaType := range types {
		event := encodedEvent(f, mediaType, "a")
		f.Add(uint8(i), append(bytes.Clone(event), event...), uint64(1))
	}
	f.Add(uint8(slices.Index(types, runtime.ContentTypeJSON)), []byte("{} {}\n{\n}\nno\n"), uint64(2))
	f.Fuzz(func(t *testing.T, which uint8, stream []byte, seed uint64) {
		if len(stream) > 4<<10 {
			t.Skip()
		}
		contentType := contentTypes[types[int(which)%len(types)]]
		random := rand.New(rand.NewPCG(seed, 0))
		cuts := frames(t, contentType, stream, func(left int) int { return 1 + random.IntN(left) })
		// What can't be read is one frame for each piece it comes in.
		for i, frame := range frames(t, contentType, stream, func(left int) int { return left }) {
			if strings.HasSuffix(frame, unreadable) {
				break
			}
			assert.False(t, i >= len(cuts) || cuts[i] != frame, "frame %d of the whole is %q, of the pieces %q", i, frame, cuts)
		}
	})
}

const unreadable = "unreadable"

func frames(t *testing.T, contentType string, stream []byte, cut func(left int) int) []string {
	splitter := NewSplitter(contentType)
	var found []string
	var all []byte
	for left := stream; len(left) > 0; {
		n := cut(len(left))
		require.NoError(t, splitter.Add(left[:n], func(frame Frame) error {
			all = append(all, frame.Wire...)
			text := string(frame.Wire)
			if frame.body == nil {
				text += unreadable
			}
			_, _ = frame.Event()
			found = append(found, text)
			return nil
		}))
		left = left[n:]
	}
	require.Equal(t, string(stream), string(all)+string(splitter.Rest()))
	return found
}
