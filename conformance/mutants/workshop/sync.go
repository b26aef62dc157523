package workshop

import (
	"os"
	"path/filepath"
	"strings"
)

// tree is the files that are to be in a folder, by their paths in it.
type tree map[string][]byte

// replace puts the tree's files below dir, in place of the folders that it has files in. All are
// written: Go's build cache goes by what is in them.
func (t tree) replace(dir string) error {
	for path := range t {
		top, _, _ := strings.Cut(path, string(filepath.Separator))
		if err := os.RemoveAll(filepath.Join(dir, top)); err != nil {
			return err
		}
	}
	for path, text := range t {
		to := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
