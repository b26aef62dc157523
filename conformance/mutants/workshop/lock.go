package workshop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockInterval is the time between two attempts to lock the folder.
const lockInterval = 200 * time.Millisecond

// Workshop is the folder of the copies and the program, which one process at a time uses.
type Workshop struct {
	dir  string
	root string
	lock *flock.Flock
}

// Open locks the folder. If another process uses it, Open waits, and says so on progress. root is
// the folder of the module that the program is built from.
func Open(ctx context.Context, root string, progress io.Writer) (*Workshop, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find a folder for the program with mutants: %w", err)
	}
	// The folder is always the same one, so that Go's build cache knows what has not changed.
	dir := filepath.Join(cache, "snowglobe", "mutants")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for the program with mutants: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		fmt.Fprintln(progress, "mutants: waiting for another process that uses", dir)
		_, err = lock.TryLockContext(ctx, lockInterval)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), lock.Close())
	}
	return &Workshop{dir, root, lock}, nil
}

// Close lets others use the folder.
func (w *Workshop) Close() error { return w.lock.Close() }

// program is where the program is.
func (w *Workshop) program() string { return filepath.Join(w.dir, "judge") }

// list is where the program's mutants are listed.
func (w *Workshop) list() string { return filepath.Join(w.dir, "mutants.json") }
