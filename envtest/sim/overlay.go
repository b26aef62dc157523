package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Tag is the build tag of sim mode.
const Tag = "snowglobesim"

//go:embed overlay
var overlay embed.FS

// Overlay writes the overlay for the Go that "go" runs in a folder ("" is the
// current one) into the user's cache, unless it is there, and returns the file that
// go build -overlay wants. The build needs Tag as well. The error names each place
// of Go's source that the edits do not find.
func Overlay(ctx context.Context, folder string) (file string, err error) {
	goVersion, goRoot, modules, err := installed(ctx, folder)
	if err != nil {
		return "", fmt.Errorf("sim mode: %w", err)
	}
	release, err := fits(goVersion)
	if err != nil {
		return "", err
	}
	if err := replaceable(goVersion, goRoot, modules); err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("sim mode: %w", err)
	}
	edits, err := allEdits(release)
	if err != nil {
		return "", fmt.Errorf("sim mode: %w", err)
	}
	files, err := edited(os.DirFS(filepath.Join(goRoot, "src")), edits)
	if err != nil {
		return "", fmt.Errorf("sim mode does not know the source of %s in %s; its edits do not find these places:\n%w", goVersion, goRoot, err)
	}
	file, err = write(filepath.Join(cache, "snowglobe", "sim"), filepath.Join(goRoot, "src"), files)
	if err != nil {
		return "", fmt.Errorf("sim mode: %w", err)
	}
	return file, nil
}

// fits returns the release that a version of Go is of, and refuses one that the edits were not made
// for, before they are tried.
func fits(goVersion string) (release string, err error) {
	known, err := knownGo()
	if err != nil {
		return "", fmt.Errorf("sim mode: %w", err)
	}
	release = version.Lang(goVersion)
	if slices.Contains(known, release) {
		return release, nil
	}
	names := strings.ReplaceAll(strings.Join(known, " or "), "go", "")
	return "", fmt.Errorf("sim mode needs Go %s, and the go command here is %s: install one of these and put it first in PATH or, if go.mod requires a later one, use go test, where a seed decides only the order of operations at the edges", names, goVersion)
}

// replaceable refuses a Go that the go command has fetched by itself, and keeps among the modules:
// it lets no overlay replace a file there.
func replaceable(goVersion, goRoot, modules string) error {
	if within, err := filepath.Rel(modules, goRoot); err != nil || !filepath.IsLocal(within) {
		return nil
	}
	return fmt.Errorf("sim mode replaces files of Go's own source, and the go command refuses that for %s in %s, which it has fetched because of GOTOOLCHAIN or go.mod: install that Go and put it first in PATH", goVersion, goRoot)
}

// installed asks the go command for its version, its root, and where it keeps modules.
func installed(ctx context.Context, folder string) (goVersion, goRoot, modules string, err error) {
	command := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOROOT", "GOMODCACHE")
	command.Dir = folder
	command.Stderr = new(bytes.Buffer)
	out, err := command.Output()
	if err != nil {
		return "", "", "", fmt.Errorf("it builds with the go command: go env: %w %s", err, command.Stderr)
	}
	lines := strings.SplitN(string(out)+"\n\n", "\n", 4)
	return strings.TrimSpace(lines[0]), strings.TrimSpace(lines[1]), strings.TrimSpace(lines[2]), nil
}

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

// write writes the files and the list of them, as a folder of that content's name.
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
		if err := replaceFile(to, []byte(text)); err != nil {
			return "", err
		}
	}
	text, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "  ")
	if err != nil {
		return "", err
	}
	return list, replaceFile(list, text)
}

// replaceFile writes a file so that others see all of it or nothing: they may be
// writing the same.
func replaceFile(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(file), ".part")
	if err != nil {
		return err
	}
	_, err = part.Write(text)
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return nil
}
