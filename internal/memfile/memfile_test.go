package memfile

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNew reads a file twice, on no disk where the system can do that, and has it gone after that.
func TestNew(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	f, err := New("answers", []byte("42"))
	require.NoError(t, err)
	for range 2 {
		content, err := os.ReadFile(f.Path())
		require.NoError(t, err)
		assert.Equal(t, "42", string(content))
	}
	if inMemory("probe", nil) != nil {
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		assert.Empty(t, entries)
	}
	require.NoError(t, f.Remove())
	assert.NoFileExists(t, f.Path())
}
