package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStamp(t *testing.T) {
	for _, want := range []stamp{{0, 0}, {7, 90 * time.Second}, {maxDeliveries, 150 * 365 * 24 * time.Hour}} {
		text := want.String()
		assert.Len(t, text, stampBytes)
		found, ok, err := findStamp([]byte("before " + text + "9 after"))
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, want, found)
	}
	_, ok, err := findStamp([]byte("an event of somebody's"))
	require.NoError(t, err)
	assert.False(t, ok, "a stamp where there is none")
	for _, broken := range []string{stampMark, stamp{7, 9}.String()[:stampBytes-1], strings.Replace(stamp{7, 9}.String(), "+", "-", 1), stampMark + strings.Repeat("x", stampBytes)} {
		_, _, err := findStamp([]byte(broken))
		assert.ErrorContains(t, err, "the stamp", broken)
	}
}

// TestFramers cuts frames out of pieces of every size.
func TestFramers(t *testing.T) {
	for mediaType, frames := range map[string][]string{
		encodings["json"].stream:     {"{\"a\":1}\n", "{}\n", "{\"bb\":[1,2]}\n"},
		encodings["protobuf"].stream: {"\x00\x00\x00\x02ab", "\x00\x00\x00\x00", "\x00\x00\x00\x03\n\n\n"},
		encodings["cbor"].stream:     {"\xa1aa\x01", "\xa0", "\xa1bbb\x82\x01\x02"},
	} {
		whole := strings.Join(frames, "")
		for size := 1; size <= len(whole); size++ {
			f := newFramer(mediaType)
			var found []string
			var held []byte
			for begin := 0; begin < len(whole); begin += size {
				held = append(held, whole[begin:min(begin+size, len(whole))]...)
				cut, err := f.cut(held, func(frame []byte) error {
					found = append(found, string(frame))
					return nil
				})
				require.NoError(t, err)
				held = held[cut:]
			}
			assert.Equal(t, frames, found, "%s in pieces of %d bytes", mediaType, size)
		}
	}
}
