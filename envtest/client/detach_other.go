//go:build !unix

package client

import "os/exec"

// detach does nothing: Ctrl-C ends the server too, and the next test starts another.
func detach(*exec.Cmd) {}
