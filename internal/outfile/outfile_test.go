package outfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/outfile"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "file")
	require.NoError(t, outfile.Write(path, []byte("longer")))
	require.NoError(t, outfile.Try("", path))
	read := func() string {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(content)
	}
	assert.Equal(t, "longer", read(), "trying a file changes it")
	require.NoError(t, outfile.Write(path, []byte("new")))
	assert.Equal(t, "new", read())
	assert.ErrorContains(t, outfile.Try(filepath.Join(path, "below")), path)
	assert.Error(t, outfile.Write(filepath.Dir(path), nil))
}
