// Package quick gives tests of this module a snowglobe whose server soon ends.
package quick

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"snowglobe.test/envtest/client/internal/program"
)

// Linger is how long the server waits for another test.
const Linger = 300 * time.Millisecond

// Program is the path of the program, while Run runs tests.
var Program string

// Run runs the tests of a package, and returns the exit code. It finds and builds the program as
// the first test of a user does.
func Run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "snowglobe-client")
	if err == nil {
		defer func() { _ = os.RemoveAll(folder) }()
		err = write(folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func write(folder string) error {
	cache, err := program.Folder()
	if err != nil {
		return err
	}
	found, err := program.Find(context.Background(), cache)
	if err != nil {
		return err
	}
	Program = filepath.Join(folder, "snowglobe")
	return os.WriteFile(Program, fmt.Appendf(nil, "#!/bin/sh\nexec '%s' \"$@\" --linger %s\n", found, Linger), 0o700)
}
