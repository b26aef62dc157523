//go:build unix

package sim

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/pages"
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
		ended <- run(command, progress, time.Millisecond)
		close(progress)
	}()
	said := false
	for line := range progress {
		if strings.HasPrefix(line, "snowglobe: building in sim mode: 1 of 3 packages (") {
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
	command := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(t.TempDir(), "decided"), "./testdata/decided")
	require.NoError(t, run(command, &progress, time.Millisecond))
	assert.Regexp(t, `snowglobe: building in sim mode: \d+ of \d\d+ packages \(`, progress.String())
}

// TestFits is about the message that a later Go gets.
func TestFits(t *testing.T) {
	for goVersion, want := range map[string]string{"go1.26": "go1.26", "go1.26.8": "go1.26", "go1.27.1": "go1.27", "go1.27rc1": "go1.27"} {
		release, err := fits(goVersion)
		require.NoError(t, err)
		assert.Equal(t, want, release)
	}
	for _, other := range []string{"go1.28.0", "go1.25.9", "devel go1.27-abcdef"} {
		_, err := fits(other)
		pages.Troubleshooting(t, "../..", err.Error())
		assert.EqualError(t, err, "sim mode needs Go 1.26 or 1.27, and the go command here is "+other+": install one of these and put it first in PATH or, if go.mod requires a later one, use go test, where a seed decides only the order of operations at the edges")
	}
}

// TestFetchedGo is a Go among the modules, and others, which stay where they are.
func TestFetchedGo(t *testing.T) {
	modules, cache := t.TempDir(), t.TempDir()
	fetched := toolchain{version: "go1.27.1", modules: modules, root: filepath.Join(modules, "golang.org", "toolchain@v0.0.1-go1.27.1.linux-amd64")}
	_, err := fetched.outOfModules(cache)
	require.Error(t, err)
	pages.Troubleshooting(t, "../..", err.Error())
	assert.ErrorContains(t, err, "sim mode replaces files of Go's own source, which the go command refuses for go1.27.1 in "+modules)

	require.NoError(t, os.MkdirAll(filepath.Join(fetched.root, "src", "errors"), 0o755))
	for range 2 { // the second time the links are there
		moved, err := fetched.outOfModules(cache)
		require.NoError(t, err)
		assert.Equal(t, []string{"GOROOT=" + moved.root, "GOTOOLCHAIN=local"}, moved.env)
		assert.DirExists(t, filepath.Join(moved.root, "src", "errors"))
		within, err := filepath.Rel(cache, moved.root)
		require.NoError(t, err)
		assert.True(t, filepath.IsLocal(within))
	}
	for _, root := range []string{"/usr/local/go", modules + "-go", filepath.Dir(modules)} {
		installed := toolchain{version: "go1.27.1", modules: modules, root: root}
		same, err := installed.outOfModules(cache)
		require.NoError(t, err)
		assert.Equal(t, installed, same)
	}
}
