package gobuild

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Program builds the program of an import path with build tags, in the module that folder is in, and
// returns where it is: in the user's cache, a place for each folder and its tags. Run tells of
// progress. What is built already is not built again.
func Program(ctx context.Context, folder, importPath string, tags []string, progress io.Writer) (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("build %s: %w", importPath, err)
	}
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", importPath, err)
	}
	place := fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, absolute, tags)))[:16]
	program := filepath.Join(user, "snowglobe", "bin", place, filepath.Base(importPath))
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	command := exec.CommandContext(ctx, "go", "build", "-tags="+strings.Join(append(tags, noPlugins), ","),
		"-ldflags=-s -w", "-buildvcs=false", "-o", program, importPath)
	command.Dir = folder
	if os.Getenv("GOGC") == "" {
		command.Env = append(os.Environ(), collectSeldom)
	}
	if err := Build(command, "snowglobe", progress); err != nil {
		return "", fmt.Errorf("build %s: %w", importPath, err)
	}
	return program, nil
}

const (
	// noPlugins is the tag without which kustomize, in kubectl, has the linker take twice as long.
	noPlugins = "kustomize_disable_go_plugin_support"
	// collectSeldom saves the compiler and the linker a fifth of their time.
	collectSeldom = "GOGC=400"
)
