// Package group runs child processes that end together with all that they start: a compiler
// or linker does not outlive its "go build".
package group

import (
	"cmp"
	"os/exec"
	"time"
)

// Grace is how long an interrupted group may take to end before it is killed, unless its
// command has a WaitDelay.
const Grace = 10 * time.Second

// Run runs a command that was made with a context, in a process group of its own: Ctrl-C at
// a terminal then reaches it through us, once. When the context ends, the group is
// interrupted. Nothing of it is left when Run returns.
func Run(command *exec.Cmd) error {
	own(command)
	command.Cancel = func() error { return interrupt(command.Process) }
	command.WaitDelay = cmp.Or(command.WaitDelay, Grace)
	defer kill(command)
	return command.Run()
}
