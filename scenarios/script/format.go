package script

import (
	"bytes"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
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
