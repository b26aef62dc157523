package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestStamp(t *testing.T) {
	for _, want := range []Stamp{{0, 0}, {7, 90 * time.Second}, {1 << 32, 150 * 365 * 24 * time.Hour}} {
		text := want.String()
		assert.Len(t, text, StampBytes)
		found, ok, err := FindStamp([]byte("before " + text + "9 after"))
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, want, found)
	}
	_, ok, err := FindStamp([]byte("an event of somebody's"))
	require.NoError(t, err)
	assert.False(t, ok, "a stamp where there is none")
	for _, broken := range []string{StampMark, Stamp{7, 9}.String()[:StampBytes-1], strings.Replace(Stamp{7, 9}.String(), "+", "-", 1), StampMark + strings.Repeat("x", StampBytes)} {
		_, _, err := FindStamp([]byte(broken))
		assert.ErrorContains(t, err, "the stamp", broken)
	}
}

// TestFramers cuts frames out of pieces of every size.
func TestFramers(t *testing.T) {
	for mediaType, frames := range map[string][]string{
		runtime.ContentTypeJSON:         {"{\"a\":1}\n", "{}\n", "{\"bb\":[1,2]}\n"},
		runtime.ContentTypeProtobuf:     {"\x00\x00\x00\x02ab", "\x00\x00\x00\x00", "\x00\x00\x00\x03\n\n\n"},
		runtime.ContentTypeCBORSequence: {"\xa1aa\x01", "\xa0", "\xa1bbb\x82\x01\x02"},
	} {
		whole := strings.Join(frames, "")
		for size := 1; size <= len(whole); size++ {
			f := NewFramer(mediaType)
			var found []string
			var held []byte
			for begin := 0; begin < len(whole); begin += size {
				held = append(held, whole[begin:min(begin+size, len(whole))]...)
				cut, err := f.Cut(held, func(frame []byte) error {
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
