package script

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// Draft is a script that is being edited: Script.Edit returns one, and Draft.Script the result.
type Draft struct {
	script  Script
	archive *txtar.Archive
	lines   []string // of the commands and comments
}

// Edit returns a draft of the script.
func (s Script) Edit() *Draft { return &Draft{s, txtar.Parse(s.text), s.Lines()} }

// Script returns the script that the draft has become.
func (d *Draft) Script() Script {
	d.archive.Comment = []byte(strings.Join(d.lines, "\n"))
	d.script.text = txtar.Format(d.archive)
	return d.script
}

// Tidy leaves exactly one empty line between the commands and the files.
func (d *Draft) Tidy() {
	for len(d.lines) > 0 && d.lines[len(d.lines)-1] == "" {
		d.lines = d.lines[:len(d.lines)-1]
	}
	d.lines = append(d.lines, "", "")
}

// SetFile adds a file, in place of one with the same name.
func (d *Draft) SetFile(name, text string) {
	d.RemoveFile(name)
	d.archive.Files = append(d.archive.Files, txtar.File{Name: name, Data: []byte(text)})
}

// RemoveFile removes a file, if it is there.
func (d *Draft) RemoveFile(name string) {
	d.removeFiles(func(f txtar.File) bool { return f.Name == name })
}

func (d *Draft) removeFiles(which func(txtar.File) bool) {
	d.archive.Files = slices.DeleteFunc(d.archive.Files, which)
}

// isCommand reports whether a line of a script is a command.
func isCommand(line string) bool {
	line = strings.TrimSpace(line)
	return line != "" && !strings.HasPrefix(line, "#")
}

// HasCommand reports whether a command line reads like line, apart from space around it.
func (d *Draft) HasCommand(line string) bool {
	return slices.ContainsFunc(d.lines, func(l string) bool { return strings.TrimSpace(l) == line })
}

// RemoveCommands removes the command lines for which a function returns true. The function
// is given each line without the space around it.
func (d *Draft) RemoveCommands(which func(line string) bool) {
	d.lines = slices.DeleteFunc(d.lines, func(line string) bool { return isCommand(line) && which(strings.TrimSpace(line)) })
}

// ReplaceCommand replaces the first line whose command has a name, and reports whether there is one.
func (d *Draft) ReplaceCommand(name string, lines []string) bool {
	at := slices.IndexFunc(d.lines, func(line string) bool { return isCommand(line) && strings.Fields(line)[0] == name })
	if at < 0 {
		return false
	}
	d.lines = slices.Replace(slices.Clone(d.lines), at, at+1, lines...)
	return true
}

// insertAfter inserts lines after each command line that matches.
func (d *Draft) insertAfter(pattern *regexp.Regexp, text string) {
	var edited []string
	for _, line := range d.lines {
		edited = append(edited, line)
		if isCommand(line) && pattern.MatchString(strings.TrimSpace(line)) {
			edited = append(edited, strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
		}
	}
	d.lines = edited
}

// replace replaces text in commands, comments and files.
func (d *Draft) replace(pattern *regexp.Regexp, with string) {
	d.lines = strings.Split(pattern.ReplaceAllString(strings.Join(d.lines, "\n"), with), "\n")
	for i := range d.archive.Files {
		d.archive.Files[i].Data = pattern.ReplaceAll(d.archive.Files[i].Data, []byte(with))
	}
}

// titleLength is the number of lines of the comment with which the script begins.
func (d *Draft) titleLength() int { return len(Comment(d.lines)) }

// SetTitle replaces the comment that the script begins with, by lines that begin with #.
func (d *Draft) SetTitle(lines ...string) {
	d.lines = slices.Concat(lines, d.lines[d.titleLength():])
}

// Begin inserts lines of commands before all others, below the title.
func (d *Draft) Begin(commands ...string) {
	title := d.titleLength()
	rest := d.lines[title:]
	for len(rest) > 0 && rest[0] == "" {
		rest = rest[1:]
	}
	if title > 0 {
		commands = append([]string{""}, commands...)
	}
	d.lines = slices.Concat(d.lines[:title], commands, rest)
}

// End adds a line of a command after all others.
func (d *Draft) End(command string) {
	d.Tidy()
	d.lines = slices.Insert(d.lines, len(d.lines)-2, command)
}

// CommandLines returns the lines of commands, in their order.
func (s Script) CommandLines() []string {
	return slices.DeleteFunc(s.Lines(), func(line string) bool { return !isCommand(line) })
}

// Without returns the script without CommandLines()[from:to]. It also drops the comments
// that no command follows any more, and the files that no command names any more.
func (s Script) Without(from, to int) Script {
	d, number := s.Edit(), -1
	d.RemoveCommands(func(string) bool {
		number++
		return from <= number && number < to
	})
	d.removeEmptyPhases()
	commands := strings.Join(d.lines, "\n")
	d.removeFiles(func(f txtar.File) bool { return !strings.Contains(commands, f.Name) })
	d.Tidy()
	return d.Script()
}

// removeEmptyPhases drops the paragraphs of comments that no command follows, but for the
// title.
func (d *Draft) removeEmptyPhases() {
	kept := slices.Clone(d.lines[:d.titleLength()])
	var pending []string // comments and blank lines before the next command
	for _, line := range d.lines[len(kept):] {
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
	d.lines = kept
}
