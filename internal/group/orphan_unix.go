//go:build unix && !linux

package group

import "syscall"

// endWithUs does nothing: these systems do not tell a process that the one that started it is gone.
func endWithUs(*syscall.SysProcAttr) {}
