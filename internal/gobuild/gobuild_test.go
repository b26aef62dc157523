//go:build unix

package gobuild

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeGo writes a program that answers "list" with four packages, and for "build" compiles
// two, waits until its pipe is closed, and fails.
const fakeGo = `#!/bin/sh
if [ "$1" = list ]; then echo "$*" >"$0.asked"; printf 'a\nb/c\nd.example/e\nf\n'; exit; fi
[ "$*" = "build -v -o there ./f" ] || { echo "asked for $*"; exit 3; }
printf 'b/c\nd.exam' >&2; printf 'ple/e\n' >&2
read released <"$0.pipe"
printf '# d.example/e\ne.go:1:1: syntax error\n' >&2
exit 1
`

// heard tells of each line that is written to it.
type heard chan string

func (h heard) Write(line []byte) (int, error) {
	h <- string(line)
	return len(line), nil
}

// TestRun builds something that does not compile: what is said comes at once and again, and
// the error has what the compiler says, without the list of packages.
func TestRun(t *testing.T) {
	program := filepath.Join(t.TempDir(), "go")
	require.NoError(t, os.WriteFile(program, []byte(fakeGo), 0o755))
	require.NoError(t, syscall.Mkfifo(program+".pipe", 0o600))
	progress := make(heard)
	type end struct {
		said string
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		said, err := run(t.Context(), exec.CommandContext(t.Context(), program, "build", "-o", "there", "./f"), "a fake", progress, time.Millisecond)
		close(progress)
		ended <- end{said, err}
	}()
	line := <-progress
	assert.True(t, strings.HasPrefix(line, "snowglobe: building a fake; "), "the first line is %q", line)
	for line := range progress {
		if strings.HasPrefix(line, "snowglobe: still building: 2 packages compiled, of 4 at most (") {
			break // otherwise the test goes on until its timeout
		}
	}
	pipe, err := os.OpenFile(program+".pipe", os.O_WRONLY, 0)
	require.NoError(t, err)
	require.NoError(t, pipe.Close())
	for range progress { // until it has ended
	}
	got := <-ended
	assert.Error(t, got.err)
	assert.Equal(t, "# d.example/e\ne.go:1:1: syntax error\n", got.said)
	asked, err := os.ReadFile(program + ".asked")
	assert.NoError(t, err, "the packages were counted")
	assert.Equal(t, "list -deps ./f\n", string(asked), "the packages were counted")
}

// slowGo is a go command that writes something, and removes it when it is interrupted.
const slowGo = `#!/bin/sh
[ "$1" = list ] && exit
trap 'rm -r "$0.work"; exit 1' INT
mkdir "$0.work"
while :; do sleep 0.01; done
`

// TestRunInterrupted leaves nothing of a build.
func TestRunInterrupted(t *testing.T) {
	program := filepath.Join(t.TempDir(), "go")
	require.NoError(t, os.WriteFile(program, []byte(slowGo), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	progress := make(heard)
	ended := make(chan error, 1)
	go func() {
		_, err := run(ctx, exec.CommandContext(ctx, program, "build", "./f"), "a fake", progress, time.Millisecond)
		close(progress)
		ended <- err
	}()
	for range progress {
		if _, err := os.Stat(program + ".work"); err == nil {
			cancel()
		}
	}
	assert.Error(t, <-ended, "a build that was interrupted has succeeded")
	_, err := os.Stat(program + ".work")
	assert.Error(t, err, "what the build has written is still there")
}
