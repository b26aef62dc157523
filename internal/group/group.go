// Package group runs child processes that end together with all that they start: a compiler
// or linker does not outlive its "go build".
package group

import (
	"cmp"
	"os/exec"
	"runtime"
	"time"
)

// Grace is how long an interrupted group may take to end before it is killed, unless its
// command has a WaitDelay.
const Grace = 10 * time.Second

// Run runs a command that was made with a context, in a process group of its own: Ctrl-C at
// a terminal then reaches it through us, once. When the context ends, the group is
// interrupted. Nothing of it is left when Run returns. On Linux the command is interrupted, too, when
// this process is gone, even if it was killed.
func Run(command *exec.Cmd) error {
	own(command)
	runtime.LockOSThread() // on Linux the command ends with the thread that has started it
	defer runtime.UnlockOSThread()
	command.Cancel = func() error { return interrupt(command.Process) }
	command.WaitDelay = cmp.Or(command.WaitDelay, Grace)
	defer kill(command)
	return command.Run()
}
