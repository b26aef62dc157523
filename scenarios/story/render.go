package story

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"snowglobe.test/envtest/trace"
)

// TextOptions says how a story is written. The zero value is short and without colour.
type TextOptions struct {
	// Color adds ANSI colours.
	Color bool
	// Verbose shows everything except routine requests of the server to itself.
	Verbose bool
	// Columns is the width at which lines are wrapped; 0 leaves each event on one line.
	Columns int
}

// Write writes what happened in a run, for people: the script's comments as
// headings, its commands, and their effects.
func Write(w io.Writer, records []trace.Record, opts TextOptions) error {
	shown, hidden := records, 0
	if opts.Verbose {
		shown, hidden = withoutRoutine(records)
	} else {
		shown, hidden = abridge(records)
	}
	var text bytes.Buffer
	// With Verbose, WriteText leaves out nothing, so that there is one line per record.
	if err := trace.WriteText(&text, shown, trace.TextOptions{Verbose: true, Color: opts.Color}); err != nil {
		return err
	}
	var out bytes.Buffer
	lines := strings.Split(text.String(), "\n")
	for i, rec := range shown {
		writeLine(&out, rec, lines[i], i == 0, opts)
	}
	if hidden > 0 {
		out.WriteByte('\n')
		writeWrapped(&out, "  ", Paint(opts.Color, faint, fmt.Sprintf("(%d events of the servers' own routine are not shown)", hidden)), opts.Columns)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// writeLine writes a record: a heading, a command, or the indented line of an event.
func writeLine(out *bytes.Buffer, rec trace.Record, line string, first bool, opts TextOptions) {
	end := "s  "
	if opts.Color {
		end = "s\x1b[0m  "
	}
	elapsed, event, _ := strings.Cut(line, end)
	note, _ := rec.Event.(trace.Note)
	if phase, ok := strings.CutPrefix(note.Text, string(phaseLine)); ok {
		if !first {
			out.WriteByte('\n')
		}
		columns := headingColumns
		if opts.Columns > 0 {
			columns = min(columns, opts.Columns-len("  "))
		}
		for _, line := range wrap(phase, columns) {
			fmt.Fprintf(out, "  %s\n", Paint(opts.Color, strong, line))
		}
		return
	}
	if strings.HasPrefix(note.Text, string(commandLine)) {
		writeWrapped(out, "  "+elapsed+end, Paint(opts.Color, cyan, note.Text), opts.Columns)
		return
	}
	writeWrapped(out, "  "+elapsed+end+"  ", event, opts.Columns)
}

// writeWrapped writes text after a prefix. What does not fit into the columns follows on
// lines that are indented by two more than the prefix. With 0 columns, nothing is wrapped.
func writeWrapped(out *bytes.Buffer, prefix, text string, columns int) {
	indent := visible(prefix) + 2
	lines := []string{text}
	if columns > 0 && visible(prefix)+visible(text) > columns {
		lines = wrap(text, max(columns-indent, 20))
	}
	fmt.Fprintf(out, "%s%s\n", prefix, lines[0])
	for _, line := range lines[1:] {
		fmt.Fprintf(out, "%*s%s\n", indent, "", line)
	}
}

// visible is how many columns text takes: ANSI codes take none.
func visible(text string) int { return utf8.RuneCountInString(ansi.ReplaceAllString(text, "")) }

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

// headingColumns is the width at which a heading is wrapped.
const headingColumns = 96

// wrap breaks text between words into lines that are at most columns wide.
func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for word := range strings.SplitAfterSeq(text, " ") {
		if line != "" && visible(line)+visible(strings.TrimRight(word, " ")) > columns {
			lines = append(lines, strings.TrimRight(line, " "))
			line = ""
		}
		if line == "" && len(lines) > 0 {
			word = strings.TrimLeft(word, " ")
		}
		line += word
	}
	return append(lines, strings.TrimRight(line, " "))
}

// ANSI codes.
const (
	strong = "1"
	faint  = "2"
	cyan   = "36"
)

// Paint puts a text into an ANSI code, unless there are to be no colours.
func Paint(color bool, code, text string) string {
	if !color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
