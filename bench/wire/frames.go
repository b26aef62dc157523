package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/fxamacker/cbor/v2"
	"k8s.io/apimachinery/pkg/runtime"
)

// Framer tells how many bytes the first frame has of what a watch has sent, 0 if it is not whole.
type Framer func(p []byte) (int, error)

// Cut calls each with the frames at the beginning of p, of one event each, and returns how many bytes
// they had.
func (f Framer) Cut(p []byte, each func(frame []byte) error) (cut int, err error) {
	for cut < len(p) {
		size, err := f(p[cut:])
		if err != nil || size == 0 {
			return cut, err
		}
		if err := each(p[cut : cut+size]); err != nil {
			return cut, err
		}
		cut += size
	}
	return cut, nil
}

// NewFramer returns the framer of a media type. JSON and protobuf are cut without a look at what
// the frames hold; CBOR has no framing, so that an item has to be read to know where it ends.
func NewFramer(mediaType string) Framer {
	switch mediaType {
	case runtime.ContentTypeJSON:
		return line
	case runtime.ContentTypeProtobuf:
		return counted
	}
	return item
}

// line ends with a line break and has no other.
func line(p []byte) (int, error) { return bytes.IndexByte(p, '\n') + 1, nil }

// counted begins with its length.
func counted(p []byte) (int, error) {
	const lengthBytes = 4
	if len(p) < lengthBytes {
		return 0, nil
	}
	size := lengthBytes + int(binary.BigEndian.Uint32(p))
	if size > len(p) {
		return 0, nil
	}
	return size, nil
}

// item is one of CBOR.
func item(p []byte) (int, error) {
	rest, err := cbor.UnmarshalFirst(p, &unread{})
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, nil // it is not whole
	}
	return len(p) - len(rest), err
}

// unread is an item of which only the length counts.
type unread struct{}

// UnmarshalCBOR implements cbor.Unmarshaler.
func (*unread) UnmarshalCBOR([]byte) error { return nil }
