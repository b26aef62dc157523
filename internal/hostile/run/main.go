// Command run runs a command in the environment of another user's machine; where that is
// possible, also under another name of the host. The go command keeps its caches.
//
//	go run ./internal/hostile/run go test ./scenarios -run TestLibrary
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"snowglobe.test/internal/home"
	"snowglobe.test/internal/hostile"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			os.Exit(exit.ExitCode())
		}
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("name the command to run")
	}
	dir, err := os.MkdirTemp("", "hostile-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	environment, err := hostile.Environment(dir)
	if err != nil {
		return err
	}
	kept, err := caches()
	if err != nil {
		return err
	}
	command := exec.Command(args[0], args[1:]...)
	if elsewhere := underAnotherName(args); exec.Command(elsewhere[0], append(elsewhere[1:6:6], "true")...).Run() == nil {
		command = exec.Command(elsewhere[0], elsewhere[1:]...)
	}
	command.Env = append(append(os.Environ(), environment...), kept...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command.Run()
}

// underAnotherName is the command in a namespace of its own, in which the host has another
// name. Only root may do that, on Linux.
func underAnotherName(args []string) []string {
	return append([]string{"unshare", "--uts", "sh", "-c", `hostname elsewhere && exec "$@"`, "sh"}, args...)
}

// caches are the variables that say where the go command and sim mode keep what they build,
// and how the go command was set up.
func caches() ([]string, error) {
	kept, err := home.GoEnvironment()
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	return append(kept, "XDG_CACHE_HOME="+cache), err
}
