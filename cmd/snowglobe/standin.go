package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"snowglobe.test/cmd/snowglobe/etcdmain"
)

// standIn is another program, such as etcd. This program acts as it when it is started by its name.
type standIn func(ctx context.Context, args []string, stdout, stderr io.Writer) error

const apiServerName = "kube-apiserver"

var standIns = map[string]standIn{apiServerName: playAPIServer, "etcd": etcdmain.Run}

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
