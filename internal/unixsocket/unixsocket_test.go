//go:build unix

package unixsocket

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unmaskedEnv has the test binary listen in a folder with the umask 0, which is a whole
// process's.
const unmaskedEnv = "UNIXSOCKET_UNMASKED"

func TestMain(m *testing.M) {
	if folder := os.Getenv(unmaskedEnv); folder != "" {
		syscall.Umask(0)
		listenAll(folder)
		return
	}
	os.Exit(m.Run())
}

// listenAll listens in a folder in three ways, and prints the modes that come of it.
func listenAll(folder string) {
	for name, listen := range map[string]func(path string) (net.Listener, error){
		"careless": func(path string) (net.Listener, error) { return net.Listen("unix", path) },
		"early":    func(path string) (net.Listener, error) { return config().Listen(context.Background(), "unix", path) },
		"careful":  func(path string) (net.Listener, error) { return Listen(context.Background(), path) },
	} {
		path := filepath.Join(folder, name)
		l, err := listen(path)
		if err != nil {
			fmt.Println(err)
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			fmt.Println(err)
		} else {
			fmt.Printf("%s %04o\n", name, info.Mode().Perm())
		}
		_ = l.Close()
	}
}

func TestModeWhateverTheUmask(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), unmaskedEnv+"="+t.TempDir())
	said, err := child.CombinedOutput()
	require.NoError(t, err)
	assert.Contains(t, string(said), "careless 0777", "or the umask is not what this is about")
	assert.Contains(t, string(said), "careful 0600")
	if runtime.GOOS == "linux" {
		assert.Contains(t, string(said), "early 0600", "no other user can come in before its mode is set")
	}
}

func TestListenRefuses(t *testing.T) {
	open := t.TempDir()
	require.NoError(t, os.Chmod(open, 0o777))
	shared := t.TempDir()
	require.NoError(t, os.Chmod(shared, 0o777|fs.ModeSticky))
	for path, want := range map[string]string{
		"":                               "abstract",
		"@s":                             "abstract",
		filepath.Join(open, "s"):         "chmod o-w " + open,
		filepath.Join(open, "gone", "s"): "no such file",
		filepath.Join(shared, "s"):       "",
		filepath.Join(shared, strings.Repeat("s", 200)): fmt.Sprintf("bytes, and %d at most are possible", maxPath),
	} {
		l, err := Listen(t.Context(), path)
		if want != "" {
			require.ErrorContains(t, err, want, path)
			continue
		}
		require.NoError(t, err, path)
		_, err = Listen(t.Context(), path)
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		conn, err := Dial(t.Context(), path)
		require.NoError(t, err)
		assert.NoError(t, conn.Close())
		assert.NoError(t, l.Close())
		assert.NoFileExists(t, path)
	}
}

// owned is a file of some user.
type owned struct {
	fs.FileInfo
	uid int
}

func (o owned) Sys() any { return &syscall.Stat_t{Uid: uint32(o.uid)} }

func TestDialRefusesWhatOthersServe(t *testing.T) {
	const another = 4711
	require.NotEqual(t, another, os.Geteuid())
	assert.NoError(t, checkOwner("s", owned{uid: os.Geteuid()}))
	assert.NoError(t, checkOwner("s", owned{uid: 0}))
	assert.ErrorContains(t, checkOwner("s", owned{uid: another}), "s belongs to another user, with id 4711")
}
