package main

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// child is this program in a process of its own, with a temporary folder of its own.
type child struct {
	t         *testing.T
	cmd       *exec.Cmd
	temporary string
	output    buffer
	ended     chan error
}

// buffer is a bytes.Buffer that is read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// run starts "snowglobe ARGS" in a folder. env is added to the environment.
func run(t *testing.T, dir string, env []string, args ...string) *child {
	t.Helper()
	return runAs(t, "snowglobe", dir, env, args...)
}

// runAs is run for a program of that name. Its standard input is empty.
func runAs(t *testing.T, name, dir string, env []string, args ...string) *child {
	t.Helper()
	temporary, err := os.MkdirTemp("", "t") // short, for sockets
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	c := &child{t: t, temporary: temporary, ended: make(chan error, 1)}
	c.cmd = &exec.Cmd{Path: program, Args: append([]string{name}, args...), Dir: dir, Stdout: &c.output, Stderr: &c.output}
	c.cmd.Env = append(append(os.Environ(), "TMPDIR="+temporary), env...)
	_, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	done := make(chan struct{})
	go func() {
		c.ended <- c.cmd.Wait()
		close(done)
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-done
		_ = os.RemoveAll(temporary)
	})
	return c
}

// until waits until something is so, while the child runs.
func (c *child) until(what string, isSo func() bool) {
	c.t.Helper()
	timeout := time.After(waitTimeout)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !isSo() {
		select {
		case <-tick.C:
		case err := <-c.ended:
			c.t.Fatalf("it ended before %s: %v\n%s", what, err, &c.output)
		case <-timeout:
			c.t.Fatalf("it has not come to %s in %s:\n%s", what, waitTimeout, &c.output)
		}
	}
}

func (c *child) says(text string) {
	c.t.Helper()
	c.until("say "+text, func() bool { return strings.Contains(c.output.String(), text) })
}

func (c *child) makes(pattern string) {
	c.t.Helper()
	c.until("make "+pattern, func() bool {
		found, _ := filepath.Glob(pattern)
		return len(found) > 0
	})
}

// ready waits until the control plane of a kubeconfig answers.
func (c *child) ready(kubeconfig string) {
	c.t.Helper()
	c.makes(kubeconfig)
	c.until("be ready", func() bool {
		code, _, err := request(kubeconfig, http.MethodGet, "/readyz", "")
		return err == nil && code == http.StatusOK
	})
}

// exits waits for the end, and checks the exit code and that no temporary folder is left.
func (c *child) exits(want int, within time.Duration) string {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(within):
		c.t.Fatalf("it runs on after %s:\n%s", within, &c.output)
	}
	assert.Equal(c.t, want, c.cmd.ProcessState.ExitCode(), "%s", &c.output)
	left, err := filepath.Glob(filepath.Join(c.temporary, "snowglobe-*"))
	require.NoError(c.t, err)
	assert.Empty(c.t, left)
	return c.output.String()
}
