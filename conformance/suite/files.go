package suite

import (
	"context"
	"os"
	"path/filepath"
)

// File writes a file for the flags of a control plane that the case launches, and returns
// its path. It is removed when the case ends.
func (t *T) File(name string, content []byte) (path string) {
	path = filepath.Join(t.Folder(), name)
	t.Must(os.WriteFile(path, content, 0o600), "write %s", name)
	return path
}

// Replace gives a file other content at once, as those do who expect it to be watched.
func (t *T) Replace(path string, content []byte) {
	t.Must(os.WriteFile(path+".new", content, 0o600), "write %s", path)
	t.Must(os.Rename(path+".new", path), "replace %s", path)
}

// Folder makes an empty folder, which is removed when the case ends.
func (t *T) Folder() string {
	folder, err := os.MkdirTemp("", "snowglobe-conformance-")
	t.Must(err, "make a folder")
	t.Cleanup(func(context.Context) error { return os.RemoveAll(folder) })
	return folder
}
