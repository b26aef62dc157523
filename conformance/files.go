package conformance

import (
	"os"
	"path/filepath"

	"snowglobe.test/internal/diskerr"
)

// createFile makes sure that a file can be written. It creates missing folders, and leaves
// what is in the file.
func createFile(path string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o770); err != nil {
		return diskerr.OrSame(folder, err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return diskerr.OrSame(folder, err)
	}
	return file.Close()
}

// writeFile writes a file whatever was in it. It creates missing folders.
func writeFile(path string, content []byte) error {
	if err := createFile(path); err != nil {
		return err
	}
	return diskerr.OrSame(filepath.Dir(path), os.WriteFile(path, content, 0o666))
}
