package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// documents are the pages whose command lines must be ones that the program takes. The
// reference is made from its help, which TestHelp looks at.
var documents = []string{"../../README.md", "../../CONTRIBUTING.md", "../../docs/*.md", "../../docs/guides/*.md"}

var (
	shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	// program is how a page may write the name of the program.
	program = regexp.MustCompile(`(^|[ (])(go run \./cmd/snowglobe|go tool snowglobe|snowglobe) ([^)]*)`)
	// endOfCommand is what the shell takes for itself.
	endOfCommand = regexp.MustCompile(`\s(#|&&|\||>|;).*$`)
)

// TestDocuments parses each command line of this program in the pages.
func TestDocuments(t *testing.T) {
	found := 0
	for _, pattern := range documents {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no page, %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, block := range shellBlock.FindAllSubmatch(text, -1) {
				for _, line := range commandLines(string(block[1])) {
					found++
					if err := parses(line); err != nil {
						t.Errorf("%s: snowglobe %s: %v", file, line, err)
					}
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("the pages have %d command lines; the test looks at the wrong ones", found)
	}
}

// TestParses shows that mistakes in command lines are found.
func TestParses(t *testing.T) {
	for line, want := range map[string]bool{
		"run stale-read": true, "run --sed 1": false, "rn": false, "version twice": false, "explore --for soon a.txtar": false,
		"test ./... -run TestA": true, "up -- --event-ttl=1m": true,
	} {
		if err := parses(line); (err == nil) != want {
			t.Errorf("snowglobe %s: %v", line, err)
		}
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

// parses looks at the command, its flags and its arguments as the program does before it
// begins.
func parses(line string) error {
	defer hideForeignFlags()()
	root := newRoot()
	root.InitDefaultHelpCmd()
	cmd, args, err := root.Find(strings.Fields(strings.NewReplacer(`'`, "", `"`, "").Replace(line)))
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
