// Package tempdir makes the temporary folders of this program: private to their user, gone
// when they are removed, and at the latest when the next one is made after their process has
// died. It never touches a folder that it has not made, or whose process still runs.
package tempdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/gofrs/flock"
)

const (
	prefix = "snowglobe-"
	// lockName is a file in each folder. Its lock is held while the folder is in use, and
	// ends with the process whatever happens; a folder without the file is not ours.
	lockName = ".snowglobe-lock"
	// attempts limits how often a new folder may be mistaken for an old one.
	attempts = 100
)

// Dir is a temporary folder. Make one with Make. A nil one is a folder that is gone.
type Dir struct {
	path string
	lock *flock.Flock
}

// held are the folders of this process, each a *Dir. They belong to it, not to any value in
// it: whatever is left of them is for RemoveAll.
var held sync.Map

// Make makes a folder in os.TempDir, whose name tells what it is for. Only the user of this
// process can enter it. Before that it removes what dead processes of the user left there.
func Make(what string) (*Dir, error) {
	sweep(os.TempDir())
	first, err := os.MkdirTemp("", prefix+what+"-")
	if err != nil {
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	path := first
	// Another process may sweep the folder away before it is locked. The next name is not
	// drawn: that would take a random number more, and in sim mode make another run.
	for n := 2; ; n++ {
		lock, err := hold(path, os.O_CREATE|os.O_RDWR)
		if err == nil {
			d := &Dir{path, lock}
			held.Store(d, nil)
			return d, nil
		}
		if n > attempts || !errors.Is(err, errNotHeld) && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("lock temporary folder: %w", err), os.Remove(path))
		}
		path = first + "-" + strconv.Itoa(n)
		if err := os.Mkdir(path, 0o700); err != nil {
			return nil, fmt.Errorf("temporary folder: %w", err)
		}
	}
}

// Path is where the folder is.
func (d *Dir) Path() string { return d.path }

// Remove removes the folder with everything in it. Removing it again does nothing.
func (d *Dir) Remove() error {
	if _, there := held.LoadAndDelete(d); !there {
		return nil
	}
	if err := d.remove(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove temporary folder: %w", err)
	}
	return nil
}

// remove fails with fs.ErrNotExist if another process has removed the folder, as one
// may do from the moment the lock is released.
func (d *Dir) remove() error {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return errors.Join(err, d.lock.Close())
	}
	defer func() { _ = root.Close() }()
	if err := destroy(root, d.lock); err != nil {
		return err // and leave the rest to the next sweep
	}
	return os.Remove(d.path)
}

// RemoveAll removes all folders of this process, for one that is about to end at once.
func RemoveAll() {
	for d := range held.Range {
		_ = d.(*Dir).Remove() // the next process tries again
	}
}

// errNotHeld is the error of a lock that another process has.
var errNotHeld = errors.New("another process holds its lock")

// hold locks a folder.
func hold(path string, flags int) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(path, lockName), flock.SetFlag(flags))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, err
	}
	if !locked {
		return nil, errNotHeld
	}
	// Whoever held it before may have removed it while we opened it.
	now, err := os.Lstat(lock.Path())
	if err == nil {
		var mine fs.FileInfo
		if mine, err = lock.Stat(); err == nil && !os.SameFile(now, mine) {
			err = errNotHeld
		}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// destroy removes everything in a folder whose lock is held, the lock last, and releases it.
// Whoever takes the lock in between, and finds its file gone, does not hold the folder.
func destroy(root *os.Root, lock *flock.Flock) error {
	if err := empty(root); err != nil {
		return errors.Join(err, lock.Close())
	}
	return removeLock(root, lock)
}

// empty removes everything in a folder except the lock, which marks the folder as ours until
// the end.
func empty(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	errs := []error{err}
	for _, entry := range entries {
		if entry.Name() != lockName {
			errs = append(errs, root.RemoveAll(entry.Name()))
		}
	}
	return errors.Join(errs...)
}

// sweep removes the folders that processes of this user left when they died. What it can't
// remove it leaves to the next one.
func sweep(parent string) {
	root, err := os.OpenRoot(parent)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	entries, _ := fs.ReadDir(root.FS(), ".")
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) {
			sweepOne(root, entry.Name())
		}
	}
}

// sweepOne removes a folder if it is ours and no process uses it. In a folder where everybody can
// write, a name may be anybody's, and may come to mean something else at any moment: so
// everything is removed through the folder that was looked at.
func sweepOne(parent *os.Root, name string) {
	if info, err := parent.Lstat(name); err != nil || !info.IsDir() {
		return
	}
	root, err := parent.OpenRoot(name)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Stat("."); err != nil || !mine(info) {
		return
	}
	info, err := root.Lstat(lockName)
	if err != nil || !info.Mode().IsRegular() || !mine(info) {
		return
	}
	lock, err := hold(filepath.Join(parent.Name(), name), os.O_RDWR)
	if err != nil {
		return
	}
	if locked, err := lock.Stat(); err != nil || !os.SameFile(info, locked) {
		_ = lock.Close()
		return
	}
	if destroy(root, lock) == nil {
		_ = parent.Remove(name)
	}
}
