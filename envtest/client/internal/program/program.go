// Package program finds the snowglobe that runs control planes, or builds it.
package program

import (
	"bytes"
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

	"snowglobe.test/envtest/client/internal/own"
)

// Env is the environment variable that names a program.
const Env = "SNOWGLOBE"

// SocketEnv is the one that names the socket of a server, which then needs no program.
const SocketEnv = "SNOWGLOBE_SOCKET"

// HowToServe is the way out where a server can't be started by itself.
const HowToServe = "start a server (snowglobe serve --socket FILE) and set " + SocketEnv + " to its socket"

// Folder is where sockets, locks and programs are: the user's own, so that no other user can put
// one there.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; or %s", err, HowToServe)
	}
	path := filepath.Join(cache, "snowglobe", "serve")
	return path, own.Folder(path)
}

// Module is this module, and server the one that the program is of.
const (
	Module     = server + "/envtest/client"
	server     = "snowglobe.test"
	importPath = server + "/cmd/snowglobe"
)

// Find returns the snowglobe that Env names, or else builds the one that was released with this
// module. Its requirements are its own: the module of the test keeps what it has.
func Find(ctx context.Context, folder string) (string, error) {
	if named := os.Getenv(Env); named != "" {
		return exec.LookPath(named)
	}
	source, err := findSource(ctx)
	if err != nil {
		return "", orElse(err)
	}
	place := sha256.Sum256(fmt.Append(nil, source.dir, source.version)) // side by side with others
	path := filepath.Join(folder, fmt.Sprintf("%x", place[:8]), "snowglobe")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if source.built(path) {
		return path, nil
	}
	// Other packages' tests wait here, and would be as silent as the one that builds.
	fmt.Fprintln(os.Stderr, "snowglobe: the program that runs control planes has to be built; if another test builds it, this one waits")
	unlock, err := own.Lock(ctx, filepath.Dir(path)+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if source.built(path) {
		return path, nil
	}
	return path, source.build(ctx, path, os.Stderr)
}

// orElse adds a way out to why there is no program.
func orElse(err error) error {
	return fmt.Errorf("%w\nSet %s to a snowglobe that was built elsewhere, or %s", err, Env, HowToServe)
}

// source is what the program is built from.
type source struct {
	dir     string // a checkout of the project, or else
	version string // a release
}

// findSource asks the go command which release this module is of, which takes a tenth of a second.
// A test that was built before, with "go test -c", may run where the go command knows of no module:
// then the place of this file, as the compiler saw it, tells.
func findSource(ctx context.Context) (*source, error) {
	var m module
	err := goJSON(ctx, &m, "list", "-m", "-json", Module)
	if err == nil {
		return m.source()
	}
	_, file, _, _ := runtime.Caller(0)
	if source := sourceOf(file); source != nil {
		return source, nil
	}
	return nil, err
}

// sourceOf tells a release or a checkout by the path of this file in it; nil if neither is known.
// Those of a vendor folder tell nothing.
//
//	$GOPATH/pkg/mod/snowglobe.test/envtest/client@v0.2.0/internal/program/program.go
//	snowglobe.test/envtest/client@v0.2.0/internal/program/program.go   (with -trimpath)
//	$CHECKOUT/envtest/client/internal/program/program.go
func sourceOf(file string) *source {
	dir := filepath.Dir(filepath.Dir(filepath.Dir(filepath.FromSlash(file))))
	if _, version, released := strings.Cut(filepath.Base(dir), "@"); released {
		return &source{version: version}
	}
	source, err := module{Dir: dir}.source()
	if err != nil {
		return nil
	}
	return source
}

// module is what the go command says of this one.
type module struct {
	Dir, Version string
	Replace      *module
	Path         string
}

func (m module) source() (*source, error) {
	replaced := m.Replace
	switch {
	case replaced != nil && replaced.Version != "":
		return nil, fmt.Errorf("%s is replaced by %s %s, whose program is not known",
			Module, replaced.Path, replaced.Version)
	case replaced == nil && m.Version != "":
		return &source{version: m.Version}, nil
	}
	client := m.Dir
	if client == "" && replaced != nil {
		client = replaced.Dir // where there is a vendor folder
	}
	dir := filepath.Dir(filepath.Dir(client))
	if _, err := os.Stat(filepath.Join(dir, "cmd", "snowglobe")); err != nil {
		return nil, fmt.Errorf("%s is in %q, outside a checkout of %s: %w", Module, client, server, err)
	}
	return &source{dir: dir}, nil
}

func goJSON(ctx context.Context, into any, args ...string) error {
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, "go", args...)
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return json.Unmarshal(out, into)
}

// built reports whether the program at path is that of the release, or newer than all in the
// checkout that it was built from.
func (s *source) built(path string) bool {
	program, err := os.Stat(path)
	return err == nil && (s.dir == "" || !changed(s.dir, program.ModTime()))
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
func (s *source) build(ctx context.Context, path string, progress io.Writer) error {
	began := time.Now()
	building := filepath.Dir(path) + ".building" // one at a time, so that what a killed one leaves goes
	if err := os.RemoveAll(building); err != nil {
		return err
	}
	if err := os.Mkdir(building, 0o700); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(building) }()
	command := s.command(ctx, building)
	if said, err := run(ctx, command, progress); err != nil {
		return orElse(fmt.Errorf("build %s: %w%s", importPath, err, strings.TrimRight("\n"+said, "\n")))
	}
	// What is edited while it is built is newer than it. And it gets its name only now:
	// a program that runs cannot be written to, and its server lives on.
	made := filepath.Join(building, filepath.Base(path))
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Chtimes(made, began, began), os.Rename(made, path))
}

// A light build takes two thirds of the time, and leaves out nothing that a client can ask for. Nor has
// it symbols for debuggers.
const (
	tags    = "-tags=snowglobe_light"
	ldflags = "-ldflags=-s -w"
)

// command builds the program into a folder, whatever the module of the test has: a vendor
// folder, a workspace, flags of its own. (GOFLAGS is not emptied, since "go env -w" then counts.)
func (s *source) command(ctx context.Context, folder string) *exec.Cmd {
	path := importPath
	if s.dir == "" {
		path += "@" + s.version
	}
	command := exec.CommandContext(ctx, "go", "install", "-buildvcs=false", "-trimpath", tags, ldflags, path)
	command.Dir = s.dir
	if s.dir == "" {
		command.Dir = folder
	}
	command.Env = append(os.Environ(), "GOBIN="+folder, "GOFLAGS=-mod=readonly", "GOWORK=off", "GOOS=", "GOARCH=")
	if os.Getenv("GOGC") == "" {
		command.Env = append(command.Env, "GOGC=400") // a fifth less time for the compiler
	}
	return command
}

const (
	// progressInterval is the time between two lines about a build.
	progressInterval = 30 * time.Second
	// grace is how long an interrupted build may take to end: its linker ends first, and what
	// it has written is removed.
	grace = time.Minute
)

// run runs a build, says from time to time that it goes on, and returns what it said.
func run(ctx context.Context, build *exec.Cmd, progress io.Writer) (said string, err error) {
	fmt.Fprintln(progress, "snowglobe: building the program that runs control planes; the first time this takes some minutes")
	began, output := time.Now(), &bytes.Buffer{}
	build.Stdout, build.Stderr = output, output
	build.Cancel = func() error {
		if build.Process.Signal(os.Interrupt) == nil {
			return nil
		}
		return build.Process.Kill() // where no process can be interrupted
	}
	build.WaitDelay = grace
	endWithUs(build)
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the build ends with the thread that has started it
		defer runtime.UnlockOSThread()
		ended <- build.Run()
	}()
	again := time.NewTicker(progressInterval)
	defer again.Stop()
	for {
		select {
		case err := <-ended:
			return output.String(), errors.Join(err, context.Cause(ctx))
		case <-again.C:
			fmt.Fprintf(progress, "snowglobe: still building (%s)\n", time.Since(began).Round(time.Second))
		}
	}
}
