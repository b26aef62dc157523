//go:build unix

package own

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		require.NoError(t, Folder(path))
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, fs.ModeDir|0o700, info.Mode())
		require.NoError(t, os.Chmod(path, 0o777))
	}
}

// owned is a file of some user.
type owned struct {
	fs.FileInfo
	uid int
}

func (o owned) Sys() any { return &syscall.Stat_t{Uid: uint32(o.uid)} }

func TestCheckRefusesWhatIsAnothers(t *testing.T) {
	const another = 4711
	require.NotEqual(t, another, os.Geteuid())
	assert.NoError(t, checkOwner("s", owned{uid: os.Geteuid()}))
	assert.NoError(t, checkOwner("s", owned{uid: 0}))
	assert.ErrorContains(t, checkOwner("s", owned{uid: another}), "s belongs to another user, with id 4711")
	assert.ErrorIs(t, Check(filepath.Join(t.TempDir(), "none")), fs.ErrNotExist)
}
