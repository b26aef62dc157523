package scenarios

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

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
  insert: signal MuxAndDiscoveryComplete
  after: ^await held
- name: changes texts            # in commands and files; $1 is a group of the pattern
  replace: color. (blue|red)
  with: paint $1
- name: changes status codes     # of the answers that the clients of the script get
  answer: {from: 503, to: 404}
` + "```" + `

The patterns are Go regular expressions. A pattern that matches nothing is an error.

## Commands

The script engine is [testscript](https://pkg.go.dev/github.com/rogpeppe/go-internal/testscript).
Its own commands that are useful here are ` + "`stdout`, `stderr`, `grep`, `cmp`, `env` and `skip`" + `.
Its ` + "`stop`" + ` ends the script, not the server.

| command | |
| --- | --- |
`

// WriteReference writes the reference page of the script commands, in Markdown.
func WriteReference(w io.Writer) error {
	var page bytes.Buffer
	page.WriteString(referenceHead)
	for _, c := range commands() {
		fmt.Fprintf(&page, "| [`%s`](#%s) | %s |\n", c.name, c.name, c.summary)
	}
	for _, c := range commands() {
		fmt.Fprintf(&page, "\n## %s\n\n    %s\n\n%s.\n", c.name, c.usage(), sentence(c.summary))
		if c.details != "" {
			fmt.Fprintf(&page, "\n%s\n", c.details)
		}
		fmt.Fprintf(&page, "\n```\n%s\n```\n", c.example)
	}
	_, err := w.Write(page.Bytes())
	return err
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
