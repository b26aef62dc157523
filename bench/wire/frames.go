package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"github.com/fxamacker/cbor/v2"
	"k8s.io/apimachinery/pkg/runtime"
)

// Framer cuts the bytes of a watch into its frames, of one event each.
type Framer interface {
	// Cut calls each with the frames at the beginning of p, and returns how many bytes they had.
	Cut(p []byte, each func(frame []byte) error) (int, error)
}

// NewFramer returns the framer of a media type. JSON and protobuf are cut without a look at what
// the frames hold; CBOR has no framing, so that an item has to be read to know where it ends.
func NewFramer(mediaType string) Framer {
	switch mediaType {
	case runtime.ContentTypeJSON:
		return lines{}
	case runtime.ContentTypeProtobuf:
		return lengths{}
	}
	return items{}
}

// lines are frames that end with a line break and have no other.
type lines struct{}

func (lines) Cut(p []byte, each func([]byte) error) (cut int, err error) {
	for {
		end := bytes.IndexByte(p[cut:], '\n')
		if end < 0 {
			return cut, nil
		}
		if err := each(p[cut : cut+end+1]); err != nil {
			return cut, err
		}
		cut += end + 1
	}
}

// lengths are frames that begin with their length.
type lengths struct{}

const lengthBytes = 4

func (lengths) Cut(p []byte, each func([]byte) error) (cut int, err error) {
	for len(p)-cut >= lengthBytes {
		end := cut + lengthBytes + int(binary.BigEndian.Uint32(p[cut:]))
		if end > len(p) {
			break
		}
		if err := each(p[cut:end]); err != nil {
			return cut, err
		}
		cut = end
	}
	return cut, nil
}

// items are frames that follow one another, each an item of CBOR.
type items struct{}

func (items) Cut(p []byte, each func([]byte) error) (cut int, err error) {
	for cut < len(p) {
		rest, err := cbor.UnmarshalFirst(p[cut:], &unread{})
		if errors.Is(err, io.ErrUnexpectedEOF) {
			break // the item is not whole
		}
		if err != nil {
			return cut, err
		}
		end := len(p) - len(rest)
		if err := each(p[cut:end]); err != nil {
			return cut, err
		}
		cut = end
	}
	return cut, nil
}

// unread is an item of which only the length counts.
type unread struct{}

// UnmarshalCBOR implements cbor.Unmarshaler.
func (*unread) UnmarshalCBOR([]byte) error { return nil }
