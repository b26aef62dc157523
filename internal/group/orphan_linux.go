package group

import "syscall"

// endWithUs interrupts a command when this process is gone.
func endWithUs(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGINT }
