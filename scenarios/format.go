package scenarios

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"snowglobe.test/internal/nearest"
)

// template is what a new script begins with. It runs.
const template = `# What this script shows, in a sentence or two: its title.

# The first paragraph of the story: what is there before it happens.
start
apply settings.yaml

# What happens, and what must be seen.
fail store/put resource=configmaps with=unavailable times=1
! apply settings-2.yaml
assert settings.yaml

-- settings.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue}
-- settings-2.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
-- mutations.yaml --
# What must make the script fail: each takes away what the script shows.
- name: nothing fails
  remove: ^fail
`

// Template returns the text of a new script that runs as it is.
func Template() []byte { return []byte(template) }

// Format returns the text of a script in its standard form: no spaces at the ends of
// lines, one space after the # of a comment, and no more than one empty line between
// commands. Files stay as they are.
func Format(text []byte) []byte {
	archive := txtar.Parse(text)
	var commands bytes.Buffer
	empty := true // so that none is the first line
	for line := range strings.Lines(string(archive.Comment)) {
		line = strings.TrimRight(line, " \t\r\n")
		if words, ok := strings.CutPrefix(line, "#"); ok && words != "" {
			line = "# " + strings.TrimLeft(words, " \t")
		}
		if line == "" && empty {
			continue
		}
		empty = line == ""
		commands.WriteString(line + "\n")
	}
	archive.Comment = append(bytes.TrimRight(commands.Bytes(), "\n"), '\n')
	if len(archive.Files) > 0 {
		archive.Comment = append(archive.Comment, '\n')
	}
	return txtar.Format(archive)
}

// Text is the script as it was read.
func (s Script) Text() []byte { return s.text }

// Phases are the paragraphs of comments that tell the story, after the title.
func (s Script) Phases() []string {
	var phases []string
	for lines := s.lines(); len(lines) > 0; {
		text := comment(lines)
		if len(text) == 0 {
			lines = lines[1:]
			continue
		}
		phases = append(phases, strings.Join(text, " "))
		lines = lines[len(text):]
	}
	if s.Title() != "" {
		phases = phases[1:]
	}
	return phases
}

// WriteUsage writes what a script command does, for people to read; without a name it lists
// all commands, one per line.
func WriteUsage(w io.Writer, name string) error { return writeUsage(w, commands(), name) }

func writeUsage(w io.Writer, verbs []command, name string) error {
	var names []string
	for _, c := range verbs {
		names = append(names, c.name)
		switch name {
		case "":
			if _, err := fmt.Fprintf(w, "%-12s %s\n", c.name, c.summary); err != nil {
				return err
			}
		case c.name:
			_, err := fmt.Fprintf(w, "%s\n\n%s.\n\n%s\n\nExample:\n\n%s\n", c.usage(), sentence(c.summary), c.details, indent(c.example))
			return err
		}
	}
	if name == "" {
		return nil
	}
	return fmt.Errorf("scripts have no command %q%s", name, nearest.DidYouMean(name, names))
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
