// Package diskerr says what is wrong with a disk: full, read-only, failing. It writes nothing.
package diskerr

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Explain turns the error of something that was written in or below a folder into one
// sentence that says what to do. ok is false for an error that is not known to come from a disk.
func Explain(folder string, err error) (explained error, ok bool) {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		explained = fmt.Errorf("the disk of %q is full%s: free some space there, or use another folder", folder, Free(folder))
	case errors.Is(err, syscall.EFBIG):
		explained = fmt.Errorf("a file in %q may not grow any further: raise the limit on file sizes (ulimit -f), or use another folder", folder)
	case errors.Is(err, syscall.EROFS):
		explained = fmt.Errorf("the disk of %q is read-only: mount it for writing, or use another folder", folder)
	case errors.Is(err, fs.ErrPermission):
		explained = fmt.Errorf("no permission to write to %q: change that, or use another folder", folder)
	case errors.Is(err, syscall.EIO):
		explained = fmt.Errorf("the disk of %q fails: %w", folder, err)
	}
	return explained, explained != nil
}

// OrSame is Explain's sentence, or the error itself.
func OrSame(folder string, err error) error {
	if explained, ok := Explain(folder, err); ok {
		return explained
	}
	return err
}

// Free says how much space is left where that can be known.
func Free(folder string) string {
	free, ok := freeSpace(folder)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" (%d MB are free)", free/1_000_000)
}
