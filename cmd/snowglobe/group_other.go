//go:build !unix

package main

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func interrupt(child *os.Process) error { return child.Kill() }

func endGroup(*exec.Cmd) {}

func inForeground() bool { return true }
