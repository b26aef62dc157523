//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
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

// inForeground reports whether a read from standard input would be answered: in a process
// group that is not the terminal's, the process would be stopped.
func inForeground() bool {
	group, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp() // an error: it is no terminal
}
