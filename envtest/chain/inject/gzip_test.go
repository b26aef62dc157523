package inject

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
