// Package outfile owns the files that a command is asked to write: it tries them before anything
// else begins, and says what is wrong with their disk.
package outfile

import (
	"os"
	"path/filepath"

	"snowglobe.test/internal/diskerr"
)

// Try makes sure that files can be written. It creates missing folders, and leaves what is in a
// file. An empty path is none.
func Try(paths ...string) error {
	for _, path := range paths {
		if path == "" {
			continue
		}
		if err := try(path); err != nil {
			return diskerr.OrSame(filepath.Dir(path), err)
		}
	}
	return nil
}

func try(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o770); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	return file.Close()
}

// Write writes a file whatever was in it. It creates missing folders.
func Write(path string, content []byte) error {
	if err := Try(path); err != nil {
		return err
	}
	return diskerr.OrSame(filepath.Dir(path), os.WriteFile(path, content, 0o666))
}
