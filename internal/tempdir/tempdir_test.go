package tempdir_test

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/tempdir"
)

// childEnv makes this test program a process that makes a folder and waits to be killed.
const childEnv = "TEMPDIR_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	dir, err := tempdir.Make("child")
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(dir.Path(), "data"), []byte("much"), 0o600); err != nil {
		panic(err)
	}
	fmt.Println(dir.Path())
	_, _ = io.Copy(io.Discard, os.Stdin)
	tempdir.RemoveAll()
}

// child starts a process that uses a folder, and returns what ends it.
func child(t *testing.T) (folder string, end, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	lines := bufio.NewScanner(stdout)
	require.True(t, lines.Scan(), "the child said nothing")
	return lines.Text(), func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}, kill
}

// temporary makes the temporary folder of the test that of the process.
func temporary(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return dir
}

func make1(t *testing.T) *tempdir.Dir {
	t.Helper()
	dir, err := tempdir.Make("test")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dir.Remove()) })
	return dir
}

func TestMake(t *testing.T) {
	parent := temporary(t)
	dir := make1(t)
	assert.Equal(t, parent, filepath.Dir(dir.Path()))
	assert.True(t, strings.HasPrefix(filepath.Base(dir.Path()), "snowglobe-test-"), dir.Path())
	info, err := os.Stat(dir.Path())
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())

	require.NoError(t, os.MkdirAll(filepath.Join(dir.Path(), "a", "b"), 0o700))
	require.NoError(t, dir.Remove())
	require.NoError(t, dir.Remove(), "again")
	require.NoError(t, (*tempdir.Dir)(nil).Remove())
	assert.Empty(t, entries(t, parent))
}

// TestOtherHasRemoved is a folder that another process has removed already.
func TestOtherHasRemoved(t *testing.T) {
	temporary(t)
	dir := make1(t)
	require.NoError(t, os.RemoveAll(dir.Path()))
	assert.NoError(t, dir.Remove())
}

// TestSweep makes folders beside those of a process that runs, one that ended and one that
// was killed.
func TestSweep(t *testing.T) {
	temporary(t)
	running, _, _ := child(t)
	ended, end, _ := child(t)
	killed, _, kill := child(t)
	mine := make1(t)
	for _, dir := range []string{running, ended, killed, mine.Path()} {
		assert.DirExists(t, dir)
	}
	end()
	assert.NoDirExists(t, ended, "RemoveAll has removed it")
	kill()
	assert.DirExists(t, killed)

	make1(t)
	assert.NoDirExists(t, killed)
	assert.FileExists(t, filepath.Join(running, "data"))
	assert.DirExists(t, mine.Path())
}

// TestSweepSpares leaves alone what looks like a folder of ours and is none.
func TestSweepSpares(t *testing.T) {
	parent := temporary(t)
	precious := filepath.Join(t.TempDir(), "precious")
	write := func(path ...string) string {
		t.Helper()
		file := filepath.Join(path...)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		return file
	}
	spared := []string{
		write(parent, "snowglobe-clone", "main.go"), // without the lock
		write(parent, "other-1", ".snowglobe-lock"), // by another name
		write(parent, "snowglobe-file"),
		write(precious, "letters"),
		write(precious, ".snowglobe-lock"),
	}
	empty := filepath.Join(parent, "snowglobe-empty")
	require.NoError(t, os.Mkdir(empty, 0o700))
	require.NoError(t, os.Symlink(precious, filepath.Join(parent, "snowglobe-link")))
	locked := write(parent, "snowglobe-linked-lock", "data")
	require.NoError(t, os.Symlink(filepath.Join(precious, ".snowglobe-lock"), filepath.Join(filepath.Dir(locked), ".snowglobe-lock")))

	ours := filepath.Dir(write(parent, "snowglobe-ours", ".snowglobe-lock"))
	require.NoError(t, os.Symlink(precious, filepath.Join(ours, "link")))

	make1(t)
	assert.NoDirExists(t, ours)
	for _, file := range append(spared, locked) {
		assert.FileExists(t, file)
	}
	assert.DirExists(t, empty)
}

// TestSweepSparesOthers needs root, who alone may remove what belongs to others.
func TestSweepSparesOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a folder that belongs to another user")
	}
	parent := temporary(t)
	theirs := filepath.Join(parent, "snowglobe-theirs")
	require.NoError(t, os.Mkdir(theirs, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(theirs, ".snowglobe-lock"), nil, 0o600))
	const nobody = 65534
	require.NoError(t, os.Chown(theirs, nobody, nobody))
	make1(t)
	assert.DirExists(t, theirs)
}

// TestAtOnce makes and removes many at the same time, here and in other processes: none may
// take another's for one that was left behind.
func TestAtOnce(t *testing.T) {
	parent := temporary(t)
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 50 {
				dir, err := tempdir.Make("test")
				if !assert.NoError(t, err) {
					return
				}
				file := filepath.Join(dir.Path(), "data")
				assert.NoError(t, os.WriteFile(file, nil, 0o600))
				assert.FileExists(t, file)
				assert.NoError(t, dir.Remove())
			}
		})
	}
	work.Wait()
	assert.Empty(t, entries(t, parent))
}

func entries(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	found, err := os.ReadDir(dir)
	require.NoError(t, err)
	return found
}
