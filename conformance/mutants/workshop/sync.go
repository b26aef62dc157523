package workshop

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
)

// sync makes the folders below dir that the tree has files in as the tree says. Files that
// are right are not written again.
func (t tree) sync(dir string) error {
	tops := map[string]bool{}
	for path, text := range t {
		tops[top(path)] = true
		to := filepath.Join(dir, path)
		if now, err := os.ReadFile(to); err == nil && bytes.Equal(now, text) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
	}
	for folder := range tops {
		if err := t.clean(dir, folder); err != nil {
			return err
		}
	}
	return nil
}

// clean removes the files of a folder that are not in the tree.
func (t tree) clean(dir, folder string) error {
	return filepath.WalkDir(filepath.Join(dir, folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if _, ok := t[name]; ok {
			return nil
		}
		return os.Remove(path)
	})
}

// top is the first folder of a path.
func top(path string) string {
	for {
		up := filepath.Dir(path)
		if up == "." {
			return path
		}
		path = up
	}
}
