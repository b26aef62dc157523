package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write the reference page")

const referencePage = "../../docs/reference/cli.md"

// TestReference compares the reference page with the commands' help.
func TestReference(t *testing.T) {
	defer hideForeignFlags()()
	var page bytes.Buffer
	fmt.Fprint(&page, `# The command line

<!-- Written by go test ./cmd/snowglobe -run TestReference -update; change the help texts instead. -->

Exit codes: 0 for success, 1 if the command failed, 2 for wrong usage, and 130 if it
was interrupted.
`)
	describeCommand(&page, newRoot())
	if *update {
		if err := os.WriteFile(referencePage, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, page.Bytes()) {
		t.Error("docs/reference/cli.md does not match the help texts; run: go test ./cmd/snowglobe -run TestReference -update")
	}
}

// describeCommand writes a section for a command and its subcommands.
func describeCommand(page *bytes.Buffer, cmd *cobra.Command) {
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	fmt.Fprintf(page, "\n## %s\n\n    %s\n\n%s\n\n```sh\n%s\n```\n", cmd.CommandPath(), cmd.UseLine(), about, dedent(cmd.Example))
	if flags := cmd.LocalFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(page, "\n```\n%s```\n", flags)
	}
	for _, sub := range cmd.Commands() {
		describeCommand(page, sub)
	}
}

// dedent removes the indentation of examples.
func dedent(text string) string {
	return string(bytes.ReplaceAll([]byte(text[2:]), []byte("\n  "), []byte("\n")))
}
