//go:build !unix

package tempdir

import (
	"io/fs"
	"os"

	"github.com/gofrs/flock"
)

// mine trusts that temporary folders are the user's own, as they are on Windows.
func mine(fs.FileInfo) bool { return true }

// removeLock releases the lock first: Windows removes no file that is open. So it does not
// remove one that another process has opened since, either.
func removeLock(root *os.Root, lock *flock.Flock) error {
	if err := lock.Close(); err != nil {
		return err
	}
	return root.Remove(lockName)
}
