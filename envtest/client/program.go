package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"snowglobe.test/internal/gobuild"
)

const (
	module     = "snowglobe.test"
	importPath = module + "/cmd/snowglobe"
)

const howToRequire = "this module does not require all that " + importPath + " needs; run: go mod edit -tool=" + importPath + " && go mod tidy"

// program returns the snowglobe that SNOWGLOBE names, or else builds the one that the
// module of the current folder requires.
func program(ctx context.Context, folder string) (string, error) {
	if named := os.Getenv(programEnv); named != "" {
		return exec.LookPath(named)
	}
	source, err := findSource(ctx)
	if err != nil {
		return "", err
	}
	// Modules and Go releases side by side keep theirs.
	place := sha256.Sum256(fmt.Append(nil, source.Main, source.GoMod, runtime.Version(), os.Getenv("GOFLAGS")))
	path := filepath.Join(folder, fmt.Sprintf("%x", place[:8]), "snowglobe")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if built(path, source) {
		return path, nil
	}
	// Other packages' tests wait here, and would be as silent as the one that builds.
	fmt.Fprintln(os.Stderr, "snowglobe: the program that runs control planes has to be built; if another test builds it, this one waits")
	unlock, err := lock(ctx, filepath.Dir(path)+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if built(path, source) {
		return path, nil
	}
	return path, build(ctx, path, os.Stderr)
}

// source is where the program's source is.
type source struct {
	Main  string // the go.mod, or go.work, that decides
	GoMod string // Snowglobe's
	Dir   string // Snowglobe's folder
	Fixed bool   // a release in the module cache, which never changes
}

// findSource asks the go command, which takes a tenth of a second.
func findSource(ctx context.Context) (*source, error) {
	var env struct{ GOMOD, GOWORK string }
	if err := goJSON(ctx, &env, "env", "-json", "GOMOD", "GOWORK"); err != nil {
		return nil, err
	}
	var listed struct {
		Dir, GoMod string
		Main       bool
		Replace    *struct{ Version string }
	}
	if err := goJSON(ctx, &listed, "list", "-m", "-json", module); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, howToRequire)
	}
	local := listed.Main || listed.Replace != nil && listed.Replace.Version == ""
	return &source{Main: cmp.Or(env.GOWORK, env.GOMOD), GoMod: listed.GoMod, Dir: listed.Dir, Fixed: !local}, nil
}

func goJSON(ctx context.Context, into any, args ...string) error {
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, "go", args...)
	command.Stderr = &stderr
	out, err := command.Output()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w: put the go command there, set %s to a snowglobe that was built elsewhere, or %s", err, programEnv, howToServe)
	case err != nil:
		return fmt.Errorf("%s: %w\n%s", command, err, &stderr)
	}
	return json.Unmarshal(out, into)
}

// built reports whether the program at path is newer than all that it was built from.
func built(path string, from *source) bool {
	program, err := os.Stat(path)
	if err != nil {
		return false
	}
	newest := program.ModTime()
	for _, file := range []string{from.Main, sums(from.Main)} {
		if info, err := os.Stat(file); err == nil && info.ModTime().After(newest) {
			return false
		}
	}
	return from.Fixed || !changed(from.Dir, newest)
}

// sums is the file of checksums beside a go.mod or a go.work.
func sums(main string) string {
	if filepath.Ext(main) == ".work" {
		return main + ".sum"
	}
	return filepath.Join(filepath.Dir(main), "go.sum")
}

var errChanged = errors.New("a file has changed")

// changed reports whether a file below dir is newer than a moment.
func changed(dir string, since time.Time) bool {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != dir && entry.Name()[0] == '.' {
			return filepath.SkipDir
		}
		if entry.IsDir() || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".md") {
			return nil
		}
		info, err := entry.Info()
		if err == nil && info.ModTime().After(since) {
			return errChanged
		}
		return err
	}) != nil
}

// build builds the program, which takes minutes the first time.
func build(ctx context.Context, path string, progress io.Writer) error {
	begun, now := path+".building", time.Now()
	command := exec.CommandContext(ctx, "go", "build", "-o", begun, importPath)
	if text, err := gobuild.Run(ctx, command, "the program that runs control planes", progress); err != nil {
		if strings.Contains(text, "missing go.sum entry") || strings.Contains(text, "no required module provides package") {
			return errors.New(howToRequire) // the go command would add each of a hundred packages by itself
		}
		return fmt.Errorf("build %s: %w\n%s", importPath, err, text)
	}
	// What is edited while it is built is newer than it. And it gets its name only now:
	// a program that runs cannot be written to, and its server lives on.
	return errors.Join(os.Chtimes(begun, now, now), os.Rename(begun, path))
}
