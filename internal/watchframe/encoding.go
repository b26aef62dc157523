package watchframe

import (
	"bytes"
	stdjson "encoding/json"

	fxcbor "github.com/fxamacker/cbor/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	cbordirect "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// encoding is one in which upstream writes the events of a watch.
type encoding struct {
	mediaType string
	framer    runtime.Framer
	decode    func(body []byte, event *metav1.WatchEvent) error
	// size is how long the first frame of p is, given its body and how much was read.
	size func(p, body []byte, read int) int
	// lines says that each frame ends with its only line break; the framer ignores it.
	lines bool
	// whole reports whether p, which begins with a frame, surely ends with one; nil for no.
	whole func(p []byte) bool
}

// encodings are those that upstream can send a watch in, by its Content-Type.
var encodings = map[string]*encoding{
	runtime.ContentTypeJSON: {
		mediaType: runtime.ContentTypeJSON, framer: json.Framer, size: jsonSize, lines: true,
		whole:  func(p []byte) bool { return bytes.HasSuffix(p, []byte("\n")) },
		decode: func(body []byte, event *metav1.WatchEvent) error { return stdjson.Unmarshal(body, event) },
	},
	runtime.ContentTypeProtobuf: {
		mediaType: runtime.ContentTypeProtobuf, framer: protobuf.LengthDelimitedFramer, size: protobufSize,
		decode: func(body []byte, event *metav1.WatchEvent) error { return event.Unmarshal(body) },
	},
	runtime.ContentTypeCBORSequence: {
		mediaType: runtime.ContentTypeCBOR, framer: cbor.NewFramer(), size: cborSize,
		whole:  func(p []byte) bool { return fxcbor.Wellformed(p) == nil }, // upstream writes an item at a time
		decode: func(body []byte, event *metav1.WatchEvent) error { return cbordirect.Unmarshal(body, event) },
	},
}

// minFrameBytes is less than any event takes that is not in lines. Upstream
// writes the length of a protobuf message, four bytes, by itself.
const minFrameBytes = 5

// candidate is how much of p the framer should look at for the first frame, 0 if
// there is surely no event in p. No line ends within the searched bytes. Looking for
// the end of the line keeps the framer from reading a long frame with every piece.
func (e *encoding) candidate(p []byte, searched int) int {
	switch {
	case e.lines:
		if i := bytes.IndexByte(p[searched:], '\n'); i >= 0 {
			return searched + i + 1
		}
		return 0
	case len(p) < minFrameBytes:
		return 0
	}
	return len(p)
}

// jsonSize counts the space around a value as well.
func jsonSize(p, body []byte, _ int) int {
	const space = " \t\r\n"
	after := bytes.TrimLeft(p, space)[len(body):]
	return len(p) - len(bytes.TrimLeft(after, space))
}

// protobufSize is what was read: that framer reads no more than a frame.
func protobufSize(_, _ []byte, read int) int { return read }

// cborSize counts the tag that marks data as CBOR too, which the framer leaves out.
func cborSize(p, body []byte, _ int) int {
	tag := []byte{0xd9, 0xd9, 0xf7} // RFC 8949, 3.4.6
	after := p
	for bytes.HasPrefix(after, tag) && !bytes.HasPrefix(after, body) {
		after = after[len(tag):]
	}
	return len(p) - len(after) + len(body)
}
