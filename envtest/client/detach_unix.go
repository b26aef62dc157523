//go:build unix

package client

import (
	"os/exec"
	"syscall"
)

// detach gives a process a session of its own: Ctrl-C and the end of a terminal are not
// for it.
func detach(server *exec.Cmd) { server.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
