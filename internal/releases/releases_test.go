package releases

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	for _, good := range []string{"1.36", "v1.36", "1.36.3", "v1.36.3", "v1.38.0-rc.1"} {
		assert.NoError(t, Check(good), good)
	}
	for _, bad := range []string{"", "1", "v1", "latest", "1.36.3.4", "1.36+x", "../1.36", "1.36/.."} {
		assert.ErrorContains(t, Check(bad), "give one like 1.36", bad)
	}
}

func TestNewest(t *testing.T) {
	versions := []string{"v1.36.10", "v1.36.9", "v1.36.11-rc.0", "v1.35.4", "v1.3.6", "v1.37.0-alpha.1"}
	for wanted, want := range map[string]string{"1.36": "v1.36.10", "v1.35": "v1.35.4", "1.36.9": "v1.36.9", "1.37": "", "1.34": ""} {
		assert.Equal(t, want, newest(versions, wanted), wanted)
	}
	assert.Equal(t, []string{"v1.36.10", "v1.35.4", "v1.3.6"}, minors(versions))
}

// TestFolder finds, lists and removes what is there.
func TestFolder(t *testing.T) {
	folder := Folder(filepath.Join(t.TempDir(), "none yet"))
	none, err := folder.List()
	require.NoError(t, err)
	assert.Empty(t, none)
	for _, version := range []string{"v1.35.4", "v1.36.3", "v1.36.12", "building-4711"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(folder.program(version)), 0o700))
		require.NoError(t, os.WriteFile(folder.program(version), []byte(version), 0o700))
	}
	require.NoError(t, os.Mkdir(filepath.Join(string(folder), "v1.34.0"), 0o700), "what is left of one that was interrupted")
	versions := func() (all []string) {
		releases, err := folder.List()
		require.NoError(t, err)
		for _, r := range releases {
			all = append(all, r.Version)
		}
		return all
	}
	assert.Equal(t, []string{"v1.36.12", "v1.36.3", "v1.35.4"}, versions())
	found, err := folder.Find("1.36")
	require.NoError(t, err)
	assert.Equal(t, "v1.36.12", found.Version)
	assert.Equal(t, int64(len("v1.36.12")), found.Bytes)
	require.NoError(t, folder.Remove(found))
	assert.Equal(t, []string{"v1.36.3", "v1.35.4"}, versions())
	found, err = folder.Find("v1.34")
	require.NoError(t, err)
	assert.Nil(t, found)
	_, err = folder.Find("newest")
	assert.Error(t, err)
}

// TestOneBuild lets another process's build end first, and removes what is left of one that was killed.
func TestOneBuild(t *testing.T) {
	folder := Folder(filepath.Join(t.TempDir(), "releases"))
	require.NoError(t, os.Mkdir(string(folder), 0o700))
	other := flock.New(string(folder) + ".lock")
	require.NoError(t, other.Lock())
	said, says := io.Pipe()
	locked := make(chan func())
	go func() {
		unlock, err := folder.lock(t.Context(), says)
		assert.NoError(t, err)
		locked <- unlock
	}()
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, "another process builds a release")
	require.NoError(t, other.Unlock())
	(<-locked)()

	killed := filepath.Join(string(folder), "building-4711", "module")
	require.NoError(t, os.MkdirAll(killed, 0o700))
	for range 2 { // the second finds what the first has left
		module, err := folder.building()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(module, "go.mod"), nil, 0o600))
	}
	assert.NoDirExists(t, killed)
}
