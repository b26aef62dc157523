// Package outfile owns the files that a command is asked to write: it tries them before anything
// else begins, and says what is wrong with their disk.
package outfile

import (
	"errors"
	"io"
	"io/fs"
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

// Replace writes a file by a rename, so that others see all of it or what was there before: they may
// read it, write it too, or run it. It creates missing folders.
func Replace(path string, content io.Reader, mode fs.FileMode) error {
	folder := filepath.Dir(path)
	return diskerr.OrSame(folder, replace(folder, path, content, mode))
}

func replace(folder, path string, content io.Reader, mode fs.FileMode) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	part, err := os.CreateTemp(folder, ".part")
	if err != nil {
		return err
	}
	_, err = io.Copy(part, content)
	if err = errors.Join(err, part.Chmod(mode), part.Close()); err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return nil
}
