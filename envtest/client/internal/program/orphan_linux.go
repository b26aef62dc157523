package program

import (
	"os/exec"
	"syscall"
)

// endWithUs interrupts a command when this process is gone, as a test is after its -timeout: nobody
// waits for what it builds.
func endWithUs(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
}
