package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"snowglobe.test/envtest/fault"
)

// Case is what a run has besides the script: all that explore varies.
type Case struct {
	Seed uint64
	Plan fault.Plan
}

// Script is the script that is explored.
type Script struct {
	Name string
	Text string
}

// planFile is the file that explore adds to a script.
const planFile = "explore.faults"

// With returns the script with a case in it: a script that says its seed and its faults,
// and ends with a check. "snowglobe run" repeats the run.
func (s Script) With(c Case) string {
	archive := txtar.Parse([]byte(s.Text))
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == planFile })
	lines := slices.DeleteFunc(linesOf(archive.Comment), func(line string) bool {
		words := strings.Fields(line)
		return len(words) > 1 && (words[0] == "seed" || words[1] == planFile)
	})
	head := []string{fmt.Sprintf("seed %d", c.Seed)}
	if len(c.Plan) > 0 {
		head = append(head, "faults "+planFile)
		archive.Files = append(archive.Files, txtar.File{Name: planFile, Data: []byte(c.Plan.String())})
	}
	title := titleLength(lines)
	rest := lines[title:]
	for len(rest) > 0 && rest[0] == "" {
		rest = rest[1:]
	}
	if title > 0 {
		head = append([]string{""}, head...)
	}
	lines = slices.Concat(lines[:title], head, rest)
	if !slices.ContainsFunc(lines, isCheck) {
		lines = append(lines, "check")
	}
	archive.Comment = []byte(strings.Join(lines, "\n") + "\n\n")
	return string(txtar.Format(archive))
}

// linesOf returns the lines of the commands, without blank ones at the end.
func linesOf(commands []byte) []string {
	return strings.Split(strings.TrimRight(string(commands), "\n"), "\n")
}

// titleLength is how many lines the comment takes that a script begins with.
func titleLength(lines []string) int {
	n := slices.IndexFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "#") })
	if n < 0 {
		return len(lines)
	}
	return n
}

func isCheck(line string) bool { return strings.TrimSpace(line) == "check" }

// isCommand reports whether a line of a script is a command.
func isCommand(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && !strings.HasPrefix(line, "#")
}

// Commands returns the commands of the script, in their order.
func (s Script) Commands() []string {
	return slices.DeleteFunc(linesOf(txtar.Parse([]byte(s.Text)).Comment), func(line string) bool { return !isCommand(line) })
}

// Without returns the script without some of its commands, by their numbers from 0, nor
// comments that then say nothing, nor files that then nobody names.
func (s Script) Without(numbers ...int) Script {
	archive := txtar.Parse([]byte(s.Text))
	number := -1
	lines := slices.DeleteFunc(linesOf(archive.Comment), func(line string) bool {
		if isCommand(line) {
			number++
			return slices.Contains(numbers, number)
		}
		return false
	})
	lines = withoutEmptyPhases(lines)
	commands := strings.Join(lines, "\n")
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return !strings.Contains(commands, f.Name) })
	archive.Comment = []byte(commands + "\n\n")
	return Script{Name: s.Name, Text: string(txtar.Format(archive))}
}

// withoutEmptyPhases drops the paragraphs of comments that no command follows, but for
// the first, which is the script's.
func withoutEmptyPhases(lines []string) []string {
	kept := slices.Clone(lines[:titleLength(lines)])
	var pending []string // comments and blank lines before the next command
	for _, line := range lines[len(kept):] {
		switch {
		case isCommand(line):
			kept = append(append(kept, pending...), line)
			pending = nil
		case line == "":
			pending = []string{line}
		default:
			pending = append(pending, line)
		}
	}
	return kept
}
