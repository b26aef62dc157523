// Package own has folders, files and locks that are this user's alone.
package own

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// Folder makes a folder that is for this user alone, if it is not there. One of another user is
// refused.
func Folder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	if err := Check(path); err != nil {
		return err
	}
	return os.Chmod(path, 0o700)
}

// lockRetry is how often a lock is tried that another process holds.
const lockRetry = 20 * time.Millisecond

// Lock waits for a lock among processes.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	file := flock.New(path)
	if _, err := file.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Unlock() }, nil
}
