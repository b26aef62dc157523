package scenarios

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"snowglobe.test/scenarios/script"
)

var update = flag.Bool("update", false, "write the reference page")

const referencePage = "../docs/reference/scripts.md"

const referenceHead = `# Scenario scripts

<!-- Written by go test ./scenarios -run TestReference -update; change the usage texts instead. -->

A scenario is a single text file, a [txtar](https://pkg.go.dev/golang.org/x/tools/txtar)
archive: the commands first, then the files they name. Run it with
` + "`snowglobe run FILE`" + `, or from a test:

` + "```go" + `
func TestScenarios(t *testing.T) {
	scenarios.Test(t, "testdata")
}
` + "```" + `

Comments at the beginning of a line tell the story: each paragraph of them is a phase, and
a heading in the timeline. A command that fails ends the script; with ` + "`!`" + ` in front of
it, it must fail, and its error is put into stderr. Words are separated by spaces; 'quotes'
keep words together, and $VARIABLE is expanded outside quotes.

A script runs in virtual time: time stands still while anything happens, and
jumps when nothing does. With ` + "`snowglobe run --real-time`" + ` it runs in real time;
a script that needs virtual time says ` + "`[!virtual] skip 'why'`" + `.

Before anything starts, a script is checked: its commands and their arguments, its rules, the
files that it names, and whether it asserts anything. ` + "`snowglobe scenario lint FILE`" + ` does only
that. A script asserts something if it has a command that fails when a server does not do what
the script expects, or one with ` + "`!`" + ` in front of it.

In a story, server-1 is the control plane that the script's first start made, server-2 the
one that its next start made, and so on. The API servers of each are called apiserver-0,
apiserver-1, and so on.

## Mutations

The file ` + "`mutations.yaml`" + ` in a script lists changes that must make it fail: each takes away
what the script shows. ` + "`snowglobe run --mutations FILE`" + ` tries them, and says at which line
the script then failed: check that it is the line you expect. A mutation has a name and one of

` + "```yaml" + `
- name: leaves commands out      # all lines of commands that match
  remove: ^hold hook/
- name: puts commands in         # after each line of commands that matches
  insert: fire signal/MuxAndDiscoveryComplete
  after: ^await held
- name: changes texts            # in commands and files; $1 is a group of the pattern
  replace: color. (blue|red)
  with: paint $1
- name: changes status codes     # of the answers that the clients of the script get
  answer: {from: 503, to: 404}
` + "```" + `

The patterns are Go regular expressions. A pattern that matches nothing is an error.

## Commands

Besides these there are ` + "`stdout`, `stderr`, `grep`, `cmp`, `env` and `skip`" + `, and the commands of
[rsc.io/script](https://pkg.go.dev/rsc.io/script) about files and programs,
of which ` + "`local-exec`" + `, a program of this machine, is called ` + "`exec`" + ` there. ` + "`stop`" + ` ends the
script, not the server.

| command | |
| --- | --- |
`

// writeReference writes the reference page of the script commands, in Markdown.
func writeReference() []byte {
	commands := commandsOf(script.Script{})
	var page bytes.Buffer
	page.WriteString(referenceHead)
	for _, v := range commands {
		fmt.Fprintf(&page, "| [`%s`](#%s) | %s |\n", v.Name, v.Name, v.Summary)
	}
	for _, v := range commands {
		fmt.Fprintf(&page, "\n## %s\n\n    %s\n\n%s.\n", v.Name, v.Usage(), v.Sentence())
		if v.Details != "" {
			fmt.Fprintf(&page, "\n%s\n", v.Details)
		}
		fmt.Fprintf(&page, "\n```\n%s\n```\n", v.Example)
	}
	return page.Bytes()
}

func TestReference(t *testing.T) {
	page := writeReference()
	if *update {
		require.NoError(t, os.MkdirAll("../docs/reference", 0o755))
		require.NoError(t, os.WriteFile(referencePage, page, 0o644))
	}
	have, err := os.ReadFile(referencePage)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(have, page), "docs/reference/scripts.md does not match the usage texts; run: go test ./scenarios -run TestReference -update")
}

func TestCommandsAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range commandsOf(script.Script{}) {
		assert.False(t, seen[c.Name], "%s is there twice", c.Name)
		seen[c.Name] = true
		assert.True(t, c.Summary != "" && c.Details != "" && c.Example != "", "%s lacks a summary, details or an example", c.Name)
		assert.True(t, !strings.HasSuffix(c.Summary, ".") && c.Summary == strings.TrimSpace(c.Summary), "%s: the summary %q is not a bare imperative", c.Name, c.Summary)
		assert.True(t, strings.Contains("\n"+c.Example+" ", "\n"+c.Name+" ") || strings.Contains("\n"+c.Example+"\n", "\n"+c.Name+"\n"), "%s: the example does not use it", c.Name)
	}
}
