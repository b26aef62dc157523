package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"snowglobe.test/internal/gobuild"
	"snowglobe.test/internal/light"
)

const inSimMode = "in sim mode" // what progress calls the build

// Program builds the program of an import path in sim mode, in the module that
// folder is in, and returns where it is: in the user's cache, a place for each folder,
// so that checkouts side by side keep theirs. The first time it takes minutes, as all that the
// program is made of is built again; the build cache keeps that. Run tells of progress.
func Program(ctx context.Context, folder, importPath string, progress io.Writer) (string, error) {
	here, err := prepare(ctx, folder)
	if err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("folder of the program: %w", err)
	}
	place := fmt.Sprintf("%x", sha256.Sum256([]byte(absolute)))[:16]
	var tags []string
	if light.Build { // so that it has no more to build than the program that asks
		place, tags = place+"-light", []string{light.Tag}
	}
	program := filepath.Join(filepath.Dir(here.overlay), "bin", place, filepath.Base(importPath))
	build := here.command(ctx, "build", tags, "-o", program, importPath)
	build.Dir = folder
	build.Env = append(build.Env, "CGO_ENABLED=0") // what is in C can't be copied: see Copies
	if err := gobuild.Build(build, inSimMode, progress); err != nil {
		return "", fmt.Errorf("build %s in sim mode: %w", importPath, err)
	}
	return program, nil
}

// Run runs what Test returns, and tells of progress while that builds something. When the context of
// the command ends, nothing is left behind.
func Run(test *exec.Cmd, progress io.Writer) error { return gobuild.Run(test, inSimMode, progress) }

// Test returns the command go test with these arguments, in sim mode. It does not vet unless
// they say so: the first time, all that is imported would be vetted too, and sim mode changes no
// code of yours.
func Test(ctx context.Context, args ...string) (*exec.Cmd, error) {
	for i, arg := range args {
		if arg == "-args" || arg == "--args" {
			break
		}
		if name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "="); strings.HasPrefix(arg, "-") && name == "overlay" {
			return nil, fmt.Errorf("argument %d: sim mode is an overlay itself, and go test takes only one", i+1)
		}
	}
	here, err := prepare(ctx, "")
	if err != nil {
		return nil, err
	}
	tags, args := takeTags(args)
	return here.command(ctx, "test", tags, append([]string{"-count=1", "-vet=off"}, args...)...), nil
}

// takeTags takes the build tags out of arguments of go test, or else of GOFLAGS.
func takeTags(args []string) (tags, rest []string) {
	for _, flag := range strings.Fields(os.Getenv("GOFLAGS")) {
		if list, ok := strings.CutPrefix(strings.TrimLeft(flag, "-"), "tags="); ok {
			tags = strings.Split(list, ",")
		}
	}
	for i := 0; i < len(args); i++ {
		name, list, hasValue := strings.Cut(args[i], "=")
		switch {
		case name == "-args" || name == "--args":
			return tags, append(rest, args[i:]...)
		case name != "-tags" && name != "--tags":
			rest = append(rest, args[i])
			continue
		case !hasValue && i+1 < len(args):
			i++
			list = args[i]
		}
		tags = strings.Split(list, ",")
	}
	return tags, rest
}
