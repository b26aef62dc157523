//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// become runs a program, with which this one ends.
func become(program string) error {
	command := exec.Command(program, os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command.Run()
}
