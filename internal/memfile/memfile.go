// Package memfile gives upstream's code a file to read that is on no disk.
package memfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"snowglobe.test/internal/tempdir"
)

// File is a file in memory, or where there is no such thing in a temporary folder. Only this
// process can read it by its path. Make one with New.
type File struct {
	path   string
	remove func() error
}

// New makes a file with this content. What it is for is told in error messages.
func New(what string, content []byte) (*File, error) {
	if f := inMemory(what, content); f != nil {
		path := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
		if _, err := os.Stat(path); err == nil {
			return &File{path, f.Close}, nil
		}
		_ = f.Close() // there is no /proc
	}
	dir, err := tempdir.Make(what)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir.Path(), what)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	return &File{path, dir.Remove}, nil
}

// Path is what to open, as often as needed.
func (f *File) Path() string { return f.path }

// Remove removes the file. It is called once.
func (f *File) Remove() error { return f.remove() }
