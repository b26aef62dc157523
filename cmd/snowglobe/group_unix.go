//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup starts a child in a process group of its own, with the processes that it
// starts. Ctrl-C then reaches it through us, once.
func ownGroup(child *exec.Cmd) { child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func interrupt(child *os.Process) error { return syscall.Kill(-child.Pid, syscall.SIGINT) }

// endGroup kills what is left of a child's group.
func endGroup(child *exec.Cmd) {
	if child.Process != nil {
		_ = syscall.Kill(-child.Process.Pid, syscall.SIGKILL) // usually nobody is left
	}
}
