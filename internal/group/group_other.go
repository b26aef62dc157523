//go:build !unix

package group

import (
	"os"
	"os/exec"
)

func own(*exec.Cmd) {}

func interrupt(process *os.Process) error { return process.Kill() }

func kill(*exec.Cmd) {}
