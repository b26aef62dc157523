//go:build unix

package main

import (
	"os"
	"syscall"
)

// become runs a program in the place of this one: the terminal and its signals are the program's.
func become(program string) error {
	return syscall.Exec(program, append([]string{program}, os.Args[1:]...), os.Environ())
}
