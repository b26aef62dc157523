package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
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

// toolchain is a Go, and how its go command builds in sim mode.
type toolchain struct {
	version string   // such as go1.26.8
	root    string   // GOROOT
	modules string   // GOMODCACHE
	overlay string   // what its -overlay wants
	program string   // its go command
	env     []string // that the go command needs beside the user's
}

// prepare writes the overlay for the Go that "go" runs in a folder ("" is the current one) into the
// user's cache, unless it is there. The error names each place of Go's source that the edits do not
// find.
func prepare(ctx context.Context, folder string) (toolchain, error) {
	t, err := inFolder(ctx, folder)
	if err != nil {
		return t, fmt.Errorf("sim mode: %w", err)
	}
	release, err := fits(t.version)
	if err != nil {
		return t, err
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return t, fmt.Errorf("sim mode: %w", err)
	}
	cache := filepath.Join(user, "snowglobe", "sim")
	if t, err = t.outOfModules(cache); err != nil {
		return t, err
	}
	edits, err := allEdits(release)
	if err != nil {
		return t, fmt.Errorf("sim mode: %w", err)
	}
	source := filepath.Join(t.root, "src")
	files, err := edited(os.DirFS(source), edits)
	if err != nil {
		return t, fmt.Errorf("sim mode does not know the source of %s in %s; its edits do not find these places:\n%w", t.version, t.root, err)
	}
	t.overlay, err = write(cache, source, files)
	if err != nil {
		return t, fmt.Errorf("sim mode: %w", err)
	}
	return t, nil
}

// inFolder asks the go command which Go it runs in a folder.
func inFolder(ctx context.Context, folder string) (toolchain, error) {
	command := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOROOT", "GOMODCACHE")
	command.Dir = folder
	command.Stderr = new(bytes.Buffer)
	out, err := command.Output()
	if err != nil {
		return toolchain{}, fmt.Errorf("it builds with the go command: go env: %w %s", err, command.Stderr)
	}
	lines := strings.SplitN(string(out)+"\n\n", "\n", 4)
	return toolchain{program: "go", version: strings.TrimSpace(lines[0]), root: strings.TrimSpace(lines[1]), modules: strings.TrimSpace(lines[2])}, nil
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

// outOfModules gives a Go that the go command has fetched by itself another root. Such a Go is kept
// among the modules, where no overlay may replace a file. The root is in the cache, and links to what
// is in the other.
func (t toolchain) outOfModules(cache string) (toolchain, error) {
	if within, err := filepath.Rel(t.modules, t.root); err != nil || !filepath.IsLocal(within) {
		return t, nil
	}
	root := filepath.Join(cache, "go", fmt.Sprintf("%x", sha256.Sum256([]byte(t.root)))[:16])
	if err := link(t.root, root); err != nil {
		return t, fmt.Errorf("sim mode replaces files of Go's own source, which the go command refuses for %s in %s, where it has fetched it to, and it can't be linked to elsewhere: %w; install that Go and put it first in PATH", t.version, t.root, err)
	}
	t.root, t.program = root, filepath.Join(root, "bin", "go")
	t.env = []string{"GOROOT=" + root, "GOTOOLCHAIN=local"}
	return t, nil
}

// link makes a folder with a link to each entry of another. Others may be doing the same.
func link(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, entry := range entries {
		err := os.Symlink(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name()))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// command is a command of go that builds in sim mode, with some tags beside its own.
func (t toolchain) command(ctx context.Context, verb string, tags []string, args ...string) *exec.Cmd {
	tags = append(tags, Tag, noPlugins)
	args = append([]string{verb, "-overlay=" + t.overlay, "-tags=" + strings.Join(tags, ",")}, args...)
	command := exec.CommandContext(ctx, t.program, args...)
	command.Env = append(os.Environ(), t.env...)
	return command
}
