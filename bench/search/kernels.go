package search

import (
	"context"
	"errors"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// kernel is a known bug of a project, as one test in a package of its own.
type kernel struct {
	name  string // of the project and the number of the bug: etcd7492
	files map[string]string
}

// Where kernels are, below the folder that is given and below GOROOT.
const (
	inGoBench = "gobench/goker/blocking/*/*/*_test.go"
	inGo      = "src/runtime/testdata/testgoroutineleakprofile/goker/*.go"
)

// kernels finds the kernels in a clone of GoBench or, without one, in Go's own source.
func kernels(ctx context.Context, folder string) ([]kernel, error) {
	if folder != "" {
		return kernelsOf(folder, inGoBench, fromGoBench)
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	return kernelsOf(strings.TrimSpace(string(root)), inGo, fromGo)
}

// Kernels are the names of those that Measure would run.
func Kernels(ctx context.Context, folder string) ([]string, error) {
	all, err := kernels(ctx, folder)
	return names(all), err
}

func kernelsOf(folder, pattern string, from func(file, text string) kernel) ([]kernel, error) {
	files, err := filepath.Glob(filepath.Join(folder, filepath.FromSlash(pattern)))
	if err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	var all []kernel
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("kernel: %w", err)
		}
		all = append(all, from(file, string(text)))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no kernel %s in %s: "+
			"git clone https://github.com/timmyyuan/gobench makes a folder that has them", pattern, folder)
	}
	return all, nil
}

// fromGoBench makes a kernel of a test.
func fromGoBench(file, text string) kernel {
	number := filepath.Dir(file)
	name := filepath.Base(filepath.Dir(number)) + filepath.Base(number)
	return kernel{name, map[string]string{"kernel_test.go": text}}
}

// fromGo makes a kernel of a function that Go's own tests register, and that writes a profile at its end.
func fromGo(file, text string) kernel {
	name := strings.TrimSuffix(filepath.Base(file), ".go")
	return kernel{name, map[string]string{"kernel_test.go": text, "register_test.go": registers}}
}

const registers = `package main

import (
	"runtime/pprof"
	"testing"
)

var kernels = map[string]func(){}

func register(name string, f func()) {
	kernels[name] = f
	if pprof.Lookup("goroutineleak") == nil {
		pprof.NewProfile("goroutineleak")
	}
}

func TestKernel(t *testing.T) {
	for _, kernel := range kernels {
		kernel()
	}
}
`

// fixed is the kernel without its bug.
func (k kernel) fixed(fix fix) (kernel, error) {
	text := k.files["kernel_test.go"]
	for _, e := range fix.edits {
		if n := strings.Count(text, e.old); n != 1 {
			return kernel{}, fmt.Errorf("the fix of %s expects %q once, and it is there %d times", k.name, e.old, n)
		}
		text = strings.Replace(text, e.old, e.new, 1)
	}
	return kernel{k.name + fixedSuffix, map[string]string{"kernel_test.go": text}}, nil
}

// fixedSuffix is that of the names of fixed kernels.
const fixedSuffix = "-fixed"

// writeModule writes a module with a package for each kernel.
func writeModule(folder string, all []kernel) error {
	tags := build.Default.ReleaseTags // go1.1, go1.2 and so on
	version := strings.TrimPrefix(tags[len(tags)-1], "go")
	problems := []error{write(folder, "go.mod", "module kernels.test\n\ngo "+version+"\n")}
	for _, k := range all {
		for name, text := range k.files {
			problems = append(problems, write(filepath.Join(folder, k.name), name, text))
		}
	}
	return errors.Join(problems...)
}

func write(folder, name, text string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	return nil
}

// names are those of kernels, in the order of the alphabet.
func names(all []kernel) []string {
	var names []string
	for _, k := range all {
		names = append(names, k.name)
	}
	slices.Sort(names)
	return names
}
