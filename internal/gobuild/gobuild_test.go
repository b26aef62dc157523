//go:build unix

package gobuild

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeGo is a go command that has built one of three packages, and goes on whatever
// interrupts it.
const fakeGo = `#!/bin/sh
trap '' INT
graph=${2#-debug-actiongraph=} trace=${3#-debug-trace=}
mkdir -p "$TMPDIR/go-build7/b001"
echo data >"$TMPDIR/go-build7/b001/_pkg_.a"
objdir=$TMPDIR/go-build7/b001/
echo '[{"Mode":"build","Objdir":"'$objdir'"},{"Mode":"build"},{"Mode":"link"},{"Mode":"build"}]' >"$graph"
echo '[' >"$trace"
echo '{"name":"Executing action (build check cache a)","ph":"E"}' >>"$trace"
echo ',{"name":"Executing action (build check cache b)","ph":"E"}' >>"$trace"
echo ',{"name":"Executing action (build a)","ph":"B"}' >>"$trace"
echo ',{"name":"Executing action (build a)","ph":"E"}' >>"$trace"
echo ',{"name":"Executing action (link b)","ph":"E"}' >>"$trace"
while :; do sleep 0.01; done
`

// told is a channel that gets what is written.
type told chan string

func (c told) Write(text []byte) (int, error) {
	c <- string(text)
	return len(text), nil
}

// TestRunInterrupted ends a build by force: it has said how far it was, and nothing is left.
func TestRunInterrupted(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	progress := make(told)
	script := filepath.Join(t.TempDir(), "go")
	require.NoError(t, os.WriteFile(script, []byte(fakeGo), 0o755))
	command := exec.CommandContext(ctx, script, "build", "./...")
	command.WaitDelay = 50 * time.Millisecond
	ended := make(chan error, 1)
	go func() {
		ended <- run(command, "a fake", progress, time.Millisecond)
		close(progress)
	}()
	said := false
	for line := range progress {
		if strings.HasPrefix(line, "snowglobe: building a fake: 1 of 3 packages (") {
			said = true
			cancel()
		}
	}
	assert.True(t, said)
	assert.ErrorContains(t, <-ended, "signal: killed")
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestRunCounts builds something with the go command there is.
func TestRunCounts(t *testing.T) {
	var progress bytes.Buffer
	command := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(t.TempDir(), "built"), "./testdata/built")
	require.NoError(t, run(command, "a program", &progress, time.Millisecond))
	assert.Regexp(t, `snowglobe: building a program: \d+ of \d\d+ packages \(`, progress.String())
}

// TestBuildExplains is told by the compiler why something is not built.
func TestBuildExplains(t *testing.T) {
	var progress bytes.Buffer
	command := exec.CommandContext(t.Context(), "go", "build", "./testdata/missing")
	assert.Regexp(t, `^exit status 1\n.*testdata/missing`, Build(command, "nothing", &progress).Error())
}

// TestProgram builds one twice, in a cache of its own.
func TestProgram(t *testing.T) {
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // which would move too
		out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		require.NoError(t, err)
		t.Setenv(name, strings.TrimSpace(string(out)))
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	first, err := Program(t.Context(), "", "snowglobe.test/internal/gobuild/testdata/built", []string{"one"}, io.Discard)
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), first).Output()
	require.NoError(t, err)
	assert.Equal(t, "built\n", string(out))
	second, err := Program(t.Context(), "", "snowglobe.test/internal/gobuild/testdata/built", []string{"two"}, io.Discard)
	require.NoError(t, err)
	assert.NotEqual(t, first, second, "other tags")
	_, err = Program(t.Context(), "", "snowglobe.test/internal/gobuild/testdata/missing", nil, io.Discard)
	assert.ErrorContains(t, err, "testdata/missing")
}
