package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Program builds the program of an import path in sim mode, in the module that
// folder is in, and returns where it is: in the user's cache, a place for each folder,
// so that checkouts side by side keep theirs. The first time it takes minutes, as all that the program is made of is built again; the build cache
// keeps that. Progress is a line when a build takes longer than a second or two.
func Program(ctx context.Context, folder, importPath string, progress io.Writer) (string, error) {
	overlay, err := Overlay(ctx, folder)
	if err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("folder of the program: %w", err)
	}
	place := fmt.Sprintf("%x", sha256.Sum256([]byte(absolute)))[:16]
	program := filepath.Join(filepath.Dir(overlay), "bin", place, filepath.Base(importPath))
	build := exec.CommandContext(ctx, "go", "build", "-overlay="+overlay, "-tags="+Tag, "-o", program, importPath)
	build.Dir = folder
	var out bytes.Buffer
	build.Stdout, build.Stderr = &out, &out
	if err := reporting(progress, build.Run); err != nil {
		return "", fmt.Errorf("build %s in sim mode: %w\n%s", importPath, err, &out)
	}
	return program, nil
}

// When a build is reported for the first time, and from then on.
const (
	firstReport = 3 * time.Second
	laterReport = 30 * time.Second
)

// reporting calls f and says on w how long it has been taking.
func reporting(w io.Writer, f func() error) error {
	done := make(chan error, 1)
	begun := time.Now()
	go func() { done <- f() }()
	report := time.NewTimer(firstReport)
	defer report.Stop()
	for text := "building in sim mode; the first time this takes some minutes"; ; text = "still building" {
		select {
		case err := <-done:
			return err
		case <-report.C:
			fmt.Fprintf(w, "snowglobe: %s (%s)\n", text, time.Since(begun).Round(time.Second))
			report.Reset(laterReport)
		}
	}
}

// Test returns the command go test with these arguments, in sim mode.
func Test(ctx context.Context, args ...string) (*exec.Cmd, error) {
	for i, arg := range args {
		if arg == "-args" || arg == "--args" {
			break
		}
		if name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "="); strings.HasPrefix(arg, "-") && name == "overlay" {
			return nil, fmt.Errorf("argument %d: sim mode is an overlay itself, and go test takes only one", i+1)
		}
	}
	overlay, err := Overlay(ctx, "")
	if err != nil {
		return nil, err
	}
	tags, args := takeTags(args)
	args = append([]string{"test", "-overlay=" + overlay, "-tags=" + strings.Join(append(tags, Tag), ","), "-count=1"}, args...)
	test := exec.CommandContext(ctx, "go", args...)
	test.Env = os.Environ()
	return test, nil
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
