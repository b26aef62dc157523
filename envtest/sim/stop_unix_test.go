//go:build unix

package sim_test

import (
	"bufio"
	"bytes"
	"flag"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var stopped = flag.Duration("stopped", 0, "how long TestStopped stops a process in a system call; only more than a minute shows something")

// TestStopped stops and continues a process again and again, as a debugger or a shell does:
// a seed decides the same.
func TestStopped(t *testing.T) {
	program := decided(t)
	for _, workload := range []string{"goroutines", "long", "garbage"} {
		t.Run(workload, func(t *testing.T) {
			for seed := range 3 {
				plain, err := run(t.Context(), program, workload, seed, false)
				require.NoError(t, err)
				assert.Equal(t, plain, stopping(t, exec.CommandContext(t.Context(), program, workload, string(rune('0'+seed)))))
			}
		})
	}
}

// stopping runs a program that is stopped for longer than a goroutine elsewhere keeps a
// processor, every few milliseconds.
func stopping(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, os.Stderr
	require.NoError(t, command.Start())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for {
		select {
		case err := <-ended:
			require.NoError(t, err)
			return out.String()
		case <-time.After(15 * time.Millisecond):
		}
		_ = command.Process.Signal(syscall.SIGSTOP)
		time.Sleep(30 * time.Millisecond)
		_ = command.Process.Signal(syscall.SIGCONT)
	}
}

// TestStoppedInSystemCall stops a process for so long that a system call would be taken for
// endless, by the wall clock.
func TestStoppedInSystemCall(t *testing.T) {
	if *stopped == 0 {
		t.Skip("it takes over a minute: run it with -stopped 65s")
	}
	program := decided(t)
	for seed := range 4 { // by half of the seeds the other goroutine comes later
		command := exec.CommandContext(t.Context(), program, "syscalls", string(rune('0'+seed)))
		command.Stderr = os.Stderr
		in, err := command.StdinPipe()
		require.NoError(t, err)
		out, err := command.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, command.Start())
		lines := bufio.NewReader(out)
		first, err := lines.ReadString('\n')
		require.NoError(t, err)
		if first == "another\n" {
			require.NoError(t, in.Close())
			require.NoError(t, command.Wait())
			continue
		}
		time.Sleep(100 * time.Millisecond) // so that it is in the call
		require.NoError(t, command.Process.Signal(syscall.SIGSTOP))
		time.Sleep(*stopped)
		require.NoError(t, command.Process.Signal(syscall.SIGCONT))
		time.Sleep(500 * time.Millisecond) // in which sysmon looks
		_, err = in.Write([]byte("x"))
		require.NoError(t, err)
		rest, err := io.ReadAll(lines)
		require.NoError(t, err)
		assert.Equal(t, "read: <nil>\nanother\n", string(rest))
		require.NoError(t, command.Wait())
		return
	}
	t.Error("no seed begins with the system call")
}
