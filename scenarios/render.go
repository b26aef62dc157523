package scenarios

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"snowglobe.test/envtest/trace"
)

// TextOptions says how a story is written. The zero value is short and without colour.
type TextOptions struct {
	// Color adds ANSI colours.
	Color bool
	// Verbose shows everything except routine requests of the server to itself.
	Verbose bool
}

// WriteStory writes what happened in a run, for people: the script's comments as
// headings, its commands, and their effects.
func WriteStory(w io.Writer, records []trace.Record, opts TextOptions) error {
	shown, hidden := records, 0
	if opts.Verbose {
		shown, hidden = withoutRoutine(records)
	} else {
		shown, hidden = abridge(records)
	}
	var text bytes.Buffer
	// Verbose leaves out nothing more, so that there is one line per record.
	if err := trace.WriteText(&text, shown, trace.TextOptions{Verbose: true, Color: opts.Color}); err != nil {
		return err
	}
	var out bytes.Buffer
	lines := strings.Split(text.String(), "\n")
	for i, rec := range shown {
		writeLine(&out, rec, lines[i], i == 0, opts.Color)
	}
	if hidden > 0 {
		fmt.Fprintf(&out, "\n  %s\n", paint(opts.Color, faint, fmt.Sprintf("(%d events of the servers' own routine are not shown)", hidden)))
	}
	_, err := w.Write(out.Bytes())
	return err
}

// writeLine writes a record: a heading, a command, or the indented line of an event.
func writeLine(out *bytes.Buffer, rec trace.Record, line string, first, color bool) {
	end := "s  "
	if color {
		end = "s\x1b[0m  "
	}
	elapsed, event, _ := strings.Cut(line, end)
	note, _ := rec.Event.(trace.Note)
	if phase, ok := strings.CutPrefix(note.Text, string(phaseLine)); ok {
		if !first {
			out.WriteByte('\n')
		}
		for _, line := range wrap(phase, headingColumns) {
			fmt.Fprintf(out, "  %s\n", paint(color, strong, line))
		}
		return
	}
	if strings.HasPrefix(note.Text, string(commandLine)) {
		fmt.Fprintf(out, "  %s%s%s\n", elapsed, end, paint(color, cyan, note.Text))
		return
	}
	fmt.Fprintf(out, "  %s%s  %s\n", elapsed, end, event)
}

// headingColumns is the width at which a heading is wrapped.
const headingColumns = 96

// wrap breaks text between words into lines of at most so many columns.
func wrap(text string, columns int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > columns {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

// ANSI codes.
const (
	strong = "1"
	faint  = "2"
	cyan   = "36"
)

func paint(color bool, code, text string) string {
	if !color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
