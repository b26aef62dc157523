//go:build unix

package group

import (
	"os"
	"os/exec"
	"syscall"
)

func own(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithUs(command.SysProcAttr)
}

func interrupt(process *os.Process) error { return syscall.Kill(-process.Pid, syscall.SIGINT) }

// kill kills what is left of a command's group, which is usually nothing.
func kill(command *exec.Cmd) {
	if command.Process != nil {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
	}
}
