package watchframe

import (
	"bytes"
	"encoding/binary"
	stdjson "encoding/json"
	"errors"
	"io"
	"math"

	fxcbor "github.com/fxamacker/cbor/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	cbordirect "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// encoding is one in which upstream writes the events of a watch.
type encoding struct {
	mediaType string
	decode    func(body []byte, event *metav1.WatchEvent) error
	// first returns how long the first frame of p is, 0 if p does not have all of it, and what it
	// holds, nil if that is not readable. No frame ends within the searched bytes.
	first func(p []byte, searched int) (size int, body []byte)
	// whole reports whether p, which begins with a frame, surely ends with one; nil for no.
	whole func(p []byte) bool
}

// encodings are those that upstream can send a watch in, by its Content-Type.
var encodings = map[string]*encoding{
	runtime.ContentTypeJSON: {
		mediaType: runtime.ContentTypeJSON, first: firstJSON,
		whole:  func(p []byte) bool { return bytes.HasSuffix(p, []byte("\n")) },
		decode: func(body []byte, event *metav1.WatchEvent) error { return stdjson.Unmarshal(body, event) },
	},
	runtime.ContentTypeProtobuf: {
		mediaType: runtime.ContentTypeProtobuf, first: firstProtobuf,
		decode: func(body []byte, event *metav1.WatchEvent) error { return event.Unmarshal(body) },
	},
	runtime.ContentTypeCBORSequence: {
		mediaType: runtime.ContentTypeCBOR, first: firstCBOR,
		whole:  func(p []byte) bool { return fxcbor.Wellformed(p) == nil }, // upstream writes an item at a time
		decode: func(body []byte, event *metav1.WatchEvent) error { return cbordirect.Unmarshal(body, event) },
	},
}

// firstJSON finds a value that ends in a line. It looks for the end of the line first, so that a long
// value is not read with every piece of it.
func firstJSON(p []byte, searched int) (size int, body []byte) {
	for {
		end := bytes.IndexByte(p[searched:], '\n') + 1
		if end == 0 {
			return 0, nil
		}
		searched += end
		decoder := stdjson.NewDecoder(bytes.NewReader(p[:searched]))
		var value stdjson.RawMessage
		err := decoder.Decode(&value)
		switch {
		case err == nil:
			next := bytes.TrimLeft(p[decoder.InputOffset():searched], " \t\r\n")
			return searched - len(next), value
		case !isCut(err):
			return searched, nil
		}
	}
}

// firstProtobuf finds a message behind its length. Client-go reads none that is longer than 16 MiB.
func firstProtobuf(p []byte, _ int) (size int, body []byte) {
	const lengthBytes, maxBytes = 4, 16 << 20
	if len(p) < lengthBytes {
		return 0, nil
	}
	switch size = lengthBytes + int(binary.BigEndian.Uint32(p)); {
	case size > maxBytes:
		return len(p), nil
	case size > len(p):
		return 0, nil
	}
	return size, p[lengthBytes:size]
}

// limits are upstream's for a CBOR item. They are valid, so that there is no error.
var limits, _ = fxcbor.DecOptions{MaxNestedLevels: 10000, MaxArrayElements: math.MaxInt32, MaxMapPairs: 2 << 20}.DecMode()

// firstCBOR finds an item.
func firstCBOR(p []byte, _ int) (size int, body []byte) {
	var item fxcbor.RawMessage
	rest, err := limits.UnmarshalFirst(p, &item)
	switch {
	case err == nil:
		return len(p) - len(rest), item
	case isCut(err):
		return 0, nil
	}
	return len(p), nil
}

// isCut reports whether an error is about an end within a value.
func isCut(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
