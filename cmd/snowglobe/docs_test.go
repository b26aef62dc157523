package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/internal/pages"
)

var (
	// program is how a page may write the name of the program.
	program = regexp.MustCompile(`(^|[ (])(go run \./cmd/snowglobe|go tool snowglobe|snowglobe) ([^)]*)`)
	// endOfCommand is what the shell takes for itself.
	endOfCommand = regexp.MustCompile(`\s(#|&&|\||>|;).*$`)
)

// TestDocuments parses each command line of this program in the pages. Those of the
// reference are the examples of its help, at which TestHelp looks.
func TestDocuments(t *testing.T) {
	blocks, err := pages.Blocks("../..")
	require.NoError(t, err)
	found := 0
	for _, block := range blocks {
		if block.Language != "sh" {
			continue
		}
		for _, line := range commandLines(string(block.Text)) {
			found++
			assert.NoError(t, parses(line), "%s: snowglobe %s", block.File, line)
		}
	}
	assert.GreaterOrEqual(t, found, 20, "command lines on the pages; the test looks at the wrong ones")
}

// TestParses shows that mistakes in command lines are found.
func TestParses(t *testing.T) {
	for line, want := range map[string]bool{
		"run stale-read": true, "run --sed 1": false, "rn": false, "version twice": false, "explore --for soon a.txtar": false,
		"test ./... -run TestA": true, "up -- --event-ttl=1m": true,
	} {
		err := parses(line)
		assert.Equal(t, want, err == nil, "snowglobe %s: %v", line, err)
	}
}

// commandLines are the arguments of the program, where a block of shell calls it.
func commandLines(block string) []string {
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
		if m := program.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil && !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(endOfCommand.ReplaceAllString(m[3], "")))
		}
	}
	return lines
}

// word is a word of a command line, as a shell sees it.
var word = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)

// parses looks at the command, its flags and its arguments as the program does before it
// begins.
func parses(line string) error {
	defer hideForeignFlags()()
	root := newRoot()
	root.InitDefaultHelpCmd()
	words := word.FindAllString(line, -1)
	for i := range words {
		words[i] = strings.NewReplacer(`'`, "", `"`, "").Replace(words[i])
	}
	cmd, args, err := root.Find(words)
	if err != nil {
		return err
	}
	if !cmd.Runnable() {
		return fmt.Errorf("%q is no command", line)
	}
	if cmd.DisableFlagParsing {
		return nil
	}
	cmd.Flags().SetOutput(io.Discard)
	cmd.SetFlagErrorFunc(nil)
	if err := cmd.ParseFlags(args); err != nil && !errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
