//go:build unix

package group_test

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/group"
)

// TestRun interrupts a program that has started another: neither is left, whether they listen
// or not.
func TestRun(t *testing.T) {
	for name, script := range map[string]string{
		"listens": `sleep 1000 & echo $!; wait`,
		"deaf":    `trap '' INT; sleep 1000 & echo $!; while :; do wait; done`,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			read, write := io.Pipe()
			command := exec.CommandContext(ctx, "sh", "-c", script)
			command.Stdout, command.WaitDelay = write, 50*time.Millisecond
			ended := make(chan error, 1)
			go func() { ended <- group.Run(command) }()
			line, err := bufio.NewReader(read).ReadString('\n')
			require.NoError(t, err)
			child, err := strconv.Atoi(strings.TrimSpace(line))
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(child, 0))
			cancel()
			require.Error(t, <-ended)
			assert.Eventually(t, func() bool { return gone(t, child) }, time.Minute, time.Millisecond)
		})
	}
}

// gone reports whether a process has ended, even if its parent has not waited for it.
func gone(t *testing.T, process int) bool {
	t.Helper()
	if syscall.Kill(process, 0) != nil {
		return true
	}
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(process)).Output()
	return err != nil || strings.HasPrefix(string(state), "Z")
}
