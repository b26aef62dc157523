package sim

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"snowglobe.test/internal/outfile"
)

// Tag is the build tag of sim mode.
const Tag = "snowglobesim"

// noPlugins leaves out support for plugins of Go, which kubectl brings along for kustomize's sake: a
// program that can load plugins is larger and takes the linker nearly twice as long.
const noPlugins = "kustomize_disable_go_plugin_support"

//go:embed overlay
var overlay embed.FS

// edited returns the text of every file of Go's source that the edits change, and of
// those that are added.
func edited(source fs.FS, edits []edit) (map[string]string, error) {
	files := map[string]string{}
	var problems []error
	for _, e := range edits {
		for _, file := range e.files {
			text, ok := files[file.OldName]
			if !ok {
				original, err := fs.ReadFile(source, file.OldName)
				if err != nil {
					problems = append(problems, err)
					continue
				}
				text = string(original)
			}
			text, err := e.apply(file, text)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			files[file.OldName] = text
		}
	}
	for file, from := range additions {
		text, err := overlay.ReadFile(from)
		if err != nil {
			return nil, err
		}
		files[file] = string(text)
	}
	return files, errors.Join(problems...)
}

// write writes the files, and their list for go build -overlay, into a folder of the cache that is
// named by a hash of the content.
func write(cache, source string, files map[string]string) (list string, err error) {
	content, err := json.Marshal(files)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, fmt.Sprintf("%x", sha256.Sum256(append(content, source...)))[:16])
	list = filepath.Join(folder, "overlay.json")
	if _, err := os.Stat(list); err == nil {
		return list, nil
	}
	replace := map[string]string{}
	for file, text := range files {
		to := filepath.Join(folder, filepath.FromSlash(file))
		replace[filepath.Join(source, filepath.FromSlash(file))] = to
		if err := outfile.Replace(to, strings.NewReader(text), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "  ")
	if err != nil {
		return "", err
	}
	return list, outfile.Replace(list, bytes.NewReader(text), 0o600)
}
