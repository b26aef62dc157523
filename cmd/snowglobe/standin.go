package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"snowglobe.test/cmd/snowglobe/etcdmain"
)

const apiServerName = "kube-apiserver"

// standIns are other programs. This program acts as one of them when it is started by its name.
var standIns = map[string]func(ctx context.Context, args []string, stdout, stderr io.Writer) error{
	apiServerName: playAPIServer, "etcd": etcdmain.Run,
}

// standInNames are all names by which this program is another.
func standInNames() []string { return append(slices.Sorted(maps.Keys(standIns)), kubectlName) }

// The exit codes of the originals: 1 for every error, but 2 for flags that etcd can't parse.
const (
	standInFailed = 1
	etcdFlagExit  = 2
)

// programName is the name in the path that a program was started by.
func programName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".exe") }

// standInExit prints a stand-in's error and returns the original's exit code for it. A server
// that is ended by a signal returns no error.
func standInExit(name string, stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "%s: %v\n", name, err)
	if _, ok := errors.AsType[*etcdmain.FlagError](err); ok {
		return etcdFlagExit
	}
	return standInFailed
}

// parentInterval is the time between two looks at the parent process.
const parentInterval = time.Second / 2

// withTest returns a context that ends when the test is gone that has started this process: a test
// that panics, is killed, or takes longer than its -timeout does not stop what it has started. Who
// else starts a stand-in, such as a shell, may leave it running. It needs /proc.
func withTest(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	starter := os.Getppid()
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", starter))
	if err != nil || !isTest(program) {
		return ctx, cancel
	}
	go func() {
		defer cancel()
		_ = wait.PollUntilContextCancel(ctx, parentInterval, true, func(context.Context) (bool, error) {
			return os.Getppid() != starter, nil
		}) // its error says that ctx has ended
	}()
	return ctx, cancel
}

// isTest reports whether a program was built by "go test", or by a debugger of tests.
func isTest(program string) bool {
	name := filepath.Base(strings.TrimSuffix(program, " (deleted)"))
	return strings.HasSuffix(name, ".test") || strings.HasPrefix(name, "__debug_bin")
}
