// Package home gives the tests of a package a home folder of their own: programs that they
// start, and libraries that they link, leave files there.
package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

// variable is set where the home folder is temporary.
const variable = "SNOWGLOBE_TEST_HOME"

// Tests are those of a package, a *testing.M.
type Tests struct{ M interface{ Run() int } }

// Run runs the tests in a process of their own, as libraries look for the home folder before
// TestMain begins. What the go command keeps stays where it is. It returns the exit code.
func (t Tests) Run() int {
	if os.Getenv(variable) != "" {
		return t.M.Run()
	}
	err := again()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "run tests in a home folder of their own:", err)
	return 1
}

// again runs this program once more. Signals are meant for the tests: they end by them, or print
// their goroutines.
func again() error {
	environment, err := GoEnvironment()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "home")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(program, os.Args[1:]...)
	child.Env = append(append(os.Environ(), environment...), variable+"=temporary", "HOME="+folder,
		"XDG_CACHE_HOME="+filepath.Join(folder, ".cache"), "XDG_CONFIG_HOME="+filepath.Join(folder, ".config"))
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	defer close(signals)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return err
	}
	go func() {
		for s := range signals {
			_ = child.Process.Signal(s) // it may have ended
		}
	}()
	return child.Wait()
}

// GoEnvironment are the variables that say where the go command keeps what it fetches and
// builds, and how it was set up, as it finds them in the user's home folder.
func GoEnvironment() (all []string, err error) {
	out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOENV", "GOFLAGS", "GOMODCACHE", "GONOSUMDB", "GOPATH", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	var values map[string]string
	if err := json.Unmarshal(out, &values); err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	for name, value := range values {
		all = append(all, name+"="+value)
	}
	return all, nil
}
