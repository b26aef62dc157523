package disk_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"snowglobe.test/envtest/storage/disk"
	"snowglobe.test/internal/pages"
)

const root = "../../.."

// userEnv names the data folder that this program uses until it is killed.
const userEnv = "SNOWGLOBE_DISK_USER"

func TestMain(m *testing.M) {
	folder := os.Getenv(userEnv)
	if folder == "" {
		os.Exit(m.Run())
	}
	if _, err := disk.Use(folder); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("used")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func refused(t *testing.T, folder, want string) {
	t.Helper()
	lock, err := disk.Use(folder)
	require.Error(t, err)
	lock.Release()
	assert.Contains(t, err.Error(), want)
	pages.Troubleshooting(t, root, err.Error())
}

func TestInUseHere(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	lock, err := disk.Use(folder)
	require.NoError(t, err)
	refused(t, folder, fmt.Sprintf("data folder %q is in use by this process already", folder))
	lock.Release()
	again, err := disk.Use(folder)
	require.NoError(t, err)
	again.Release()
}

// TestInUseElsewhere names the process, and minds it no more when it is dead.
func TestInUseElsewhere(t *testing.T) {
	folder := t.TempDir()
	user := exec.Command(os.Args[0])
	user.Env = append(os.Environ(), userEnv+"="+folder)
	stdout, err := user.StdoutPipe()
	require.NoError(t, err)
	_, err = user.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, user.Start())
	kill := func() {
		_ = user.Process.Kill()
		_ = user.Wait()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "used\n", line)

	refused(t, folder, fmt.Sprintf("in use by process %d (%s)", user.Process.Pid, filepath.Base(os.Args[0])))
	kill()
	lock, err := disk.Use(folder)
	require.NoError(t, err)
	lock.Release()
}

// TestInUseByEtcd is a folder whose database a process without our lock has opened, as etcd
// does.
func TestInUseByEtcd(t *testing.T) {
	folder := t.TempDir()
	snap := filepath.Join(folder, "member", "snap")
	require.NoError(t, os.MkdirAll(snap, 0o700))
	db, err := bolt.Open(filepath.Join(snap, "db"), 0o600, nil)
	require.NoError(t, err)
	refused(t, folder, fmt.Sprintf("data folder %q is in use by an etcd that is not Snowglobe's", folder))
	require.NoError(t, db.Close())
	lock, err := disk.Use(folder)
	require.NoError(t, err)
	lock.Release()
}
