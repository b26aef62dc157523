//go:build unix

package tempdir

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/gofrs/flock"
)

// mine reports whether a file belongs to the user of this process.
func mine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// removeLock removes the file before it releases the lock: the other way round another
// process could take the lock, and think that it holds a folder that is about to go.
func removeLock(root *os.Root, lock *flock.Flock) error {
	return errors.Join(root.Remove(lockName), lock.Close())
}
