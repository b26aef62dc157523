package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the reference page")

const referencePage = "../../docs/reference/cli.md"

// TestReference compares the reference page with the commands' help.
func TestReference(t *testing.T) {
	defer hideForeignFlags()()
	var page bytes.Buffer
	fmt.Fprint(&page, `# The command line

<!-- Written by go test ./cmd/snowglobe -run TestReference -update; change the help texts instead. -->

What the exit codes mean is in [Exit codes](../exit-codes.md).
`)
	describeCommand(&page, newRoot())
	if *update {
		require.NoError(t, os.WriteFile(referencePage, page.Bytes(), 0o644))
	}
	have, err := os.ReadFile(referencePage)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(have, page.Bytes()), "docs/reference/cli.md does not match the help texts; run: go test ./cmd/snowglobe -run TestReference -update")
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
