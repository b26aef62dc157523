package chain

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// TestWatchFrames writes the events of a watch with upstream's encoders and
// framers, cut at random places: each is found, and nothing is lost. Bytes that
// are no event pass as well.
func TestWatchFrames(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, mediaType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		for _, noise := range []string{"", "{\"type\":\"ADDED\",\"object\":null}\n\n{", "\x00\x00\x00\x02no", "\xff\xff\xff\xff"} {
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
		want = append(want, "modified default/"+name)
	}
	frames := watchFrames{encoding: watchEncodingOf(mediaType + ";stream=watch")}
	whole := append(bytes.Clone(stream), noise...)
	var found []string
	var passed []byte
	for left := whole; len(left) > 0; {
		n := cut(len(left))
		require.NoError(t, frames.add(left[:n], func(frame []byte) error {
			passed = append(passed, frame...)
			if op, ok := frames.encoding.event(frame); ok && len(passed) <= len(stream) {
				found = append(found, op.Verb+" "+op.Namespace+"/"+op.Name)
			}
			return nil
		}))
		left = left[n:]
	}
	assert.Equal(t, whole, append(passed, frames.rest...))
	assert.Equal(t, want, found)
}

// encodedEvent is the frame of an event as upstream writes it.
func encodedEvent(t *testing.T, mediaType, name string) []byte {
	info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), mediaType)
	require.True(t, ok)
	version := schema.GroupVersion{Version: "v1"}
	object, err := runtime.Encode(legacyscheme.Codecs.EncoderForVersion(info.Serializer, version),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"text": "two\nlines"}})
	require.NoError(t, err)
	event, err := runtime.Encode(legacyscheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, version),
		&metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: object}})
	require.NoError(t, err)
	var frame bytes.Buffer
	_, err = info.StreamSerializer.Framer.NewFrameWriter(&frame).Write(event)
	require.NoError(t, err)
	return frame.Bytes()
}

// TestCompressedIsReadAtOnce reads a member after which nothing comes yet.
func TestCompressedIsReadAtOnce(t *testing.T) {
	errNothing := errors.New("nothing comes yet")
	reader, err := gzip.NewReader(io.MultiReader(bytes.NewReader(compressed([]byte("event"))), failing{errNothing}))
	require.NoError(t, err)
	p := make([]byte, 100)
	n, err := reader.Read(p)
	require.NoError(t, err)
	assert.Equal(t, "event", string(p[:n]))
	_, err = reader.Read(p)
	assert.ErrorIs(t, err, errNothing)
}

// failing is a reader whose every Read fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
