package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/group"
)

// exitRow is a row of the table in docs/exit-codes.md: a command, and when it ends with the
// codes 1, 2 and 130.
var exitRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.+) \\| (.+) \\| (.+) \\|$")

// elsewhere are the tests that see a command end with a code that takes a control plane, or
// a build, to make.
var elsewhere = map[string]string{
	"test 1":              "TestChildsCode",
	"test 2":              "TestChildsCode",
	"up 1":                "TestUpDiskFillsUp",
	"conformance 1":       "TestBrokenTarget",
	"conformance store 1": "TestBrokenStore",
	"bench watch 1":       "TestBrokenTarget",
	"bench all 1":         "TestSlower",
	"etcd 1":              "TestEtcdEndsByItself",
}

// TestExitCodes compares the table with the commands there are, and with what the script
// exit-codes.txtar tries.
func TestExitCodes(t *testing.T) {
	page, err := os.ReadFile("../../docs/exit-codes.md")
	require.NoError(t, err)
	script, err := os.ReadFile(filepath.Join("testdata", "exit-codes.txtar"))
	require.NoError(t, err)
	rows := map[string][]string{}
	for _, m := range exitRow.FindAllStringSubmatch(string(page), -1) {
		rows[m[1]] = m[2:]
	}
	for _, command := range leaves(newRoot()) {
		row := rows[command]
		delete(rows, command)
		if row == nil {
			t.Errorf("docs/exit-codes.md has no row for %q", command)
			continue
		}
		for i, code := range []string{"1", "2"} {
			tried := strings.Contains(string(script), "\nexits "+code+" snowglobe "+command+" ")
			where := elsewhere[command+" "+code]
			assert.Equal(t, tried || where != "", row[i] != "never", "%s: the table says of code %s: %s; tried in exit-codes.txtar: %t; elsewhere: %q", command, code, row[i], tried, where)
		}
		assert.Equal(t, interruptible[command] != nil, row[2] != "never", "%s: the table says of code 130: %s; TestInterruptedCode tries %q", command, row[2], interruptible[command])
	}
	tests := testSources(t)
	for code, name := range elsewhere {
		assert.Contains(t, tests, "\nfunc "+name+"(t *testing.T) {\n", code)
	}
	for command := range rows {
		t.Errorf("docs/exit-codes.md has a row for %q, which is no command", command)
	}
}

// testSources is the text of all tests of this package, whatever system they are for.
func testSources(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

// leaves are the commands that do something themselves: those that have no others below
// them, or have flags.
func leaves(cmd *cobra.Command) (names []string) {
	if cmd.HasParent() && !isGroup(cmd) {
		names = append(names, strings.TrimPrefix(cmd.CommandPath(), "snowglobe "))
	}
	for _, sub := range cmd.Commands() {
		names = append(names, leaves(sub)...)
	}
	return names
}

// interruptible are arguments for the commands that take time.
var interruptible = map[string][]string{
	"run":               {"stale-read"},
	"explore":           {"--sim=false", "stale-read"},
	"test":              {"."},
	"up":                {},
	"conformance":       {},
	"conformance store": {"--endpoints", "http://127.0.0.1:1"},
	"bench startup":     {"--runs", "1"},
	"bench all":         {"--quick"},
	"bench publish":     {"page", "--against="},
	"bench search":      {},
	"bench watch":       {"--duration", "1s"},
	"etcd":              {"--listen", "127.0.0.1:0"},
	"assets":            {"--release", "1.36", "assets"},
	"release build":     {"1.36"},
}

// TestInterruptedCode has Ctrl-C come before anything could begin.
func TestInterruptedCode(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(errInterrupted)
	for command, args := range interruptible {
		var stderr bytes.Buffer
		assert.Equal(t, exitInterrupted, execute(ctx, append(strings.Fields(command), args...), io.Discard, &stderr), "%s: %s", command, &stderr)
		assert.Contains(t, stderr.String(), "snowglobe: interrupted\n", command)
	}
}

// TestChildsCode passes on how "go test" ends, unless a signal has ended it.
func TestChildsCode(t *testing.T) {
	for script, want := range map[string]int{"exit 0": exitOK, "exit 1": exitBroken, "exit 2": exitUnjudged, "kill -9 $$": exitUnjudged} {
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		var stderr bytes.Buffer
		err := runChild(cmd, exec.CommandContext(t.Context(), "sh", "-c", script), group.Run)
		assert.Equal(t, want, exitCode(&stderr, "snowglobe test", err), script)
		assert.Equal(t, script == "kill -9 $$", strings.Contains(stderr.String(), "was ended by a signal"), "%s: %s", script, &stderr)
	}
}

// TestVerdicts is the codes of errors: what was found wrong stands, whatever else there is.
func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
		says string
	}{
		{nil, exitOK, ""},
		{verdict(nil), exitOK, ""},
		{failed(nil), exitOK, ""},
		{verdict(io.EOF), exitBroken, "snowglobe: EOF\n"},
		{failed(verdict(io.EOF)), exitBroken, "snowglobe: EOF\n"},
		{verdictIf(nil, io.EOF), exitOK, ""},
		{verdictIf(fmt.Errorf("more: %w", io.EOF), io.EOF), exitBroken, "snowglobe: more: EOF\n"},
		{verdictIf(io.EOF, io.ErrUnexpectedEOF), exitUnjudged, "snowglobe: EOF\n"},
		{failed(io.EOF), exitUnjudged, "snowglobe: EOF\n"},
		{io.EOF, exitUnjudged, "snowglobe: EOF; see: snowglobe up --help\n"},
		{fmt.Errorf("more: %w", verdict(io.EOF)), exitBroken, "snowglobe: more: EOF\n"},
		{failed(errInterrupted), exitInterrupted, "snowglobe: interrupted\n"},
		{&childError{7}, 7, ""},
	} {
		var stderr bytes.Buffer
		assert.Equal(t, test.code, exitCode(&stderr, "snowglobe up", test.err), "%v", test.err)
		assert.Equal(t, test.says, stderr.String())
	}
}
