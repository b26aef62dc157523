package report

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/htmlpage"
)

// Page is what WriteHTML writes.
type Page struct {
	Title string // "Trace" if empty
	// Runs are one run, or two, of which the page shows where they part.
	Runs []Run
}

// Run is what happened in one run.
type Run struct {
	Name    string // such as a script's name, or "seed 7"
	Records []trace.Record
	Failed  *Failure // nil if the run has passed
}

// Failure is where a run failed. Its zero value is the last command of the script.
type Failure struct {
	Seq  int64  // the record that failed; 0 for the script's last command
	Line int    // the line of the script; 0 if it is not known
	Text string // the error
}

//go:embed page
var files embed.FS

// scripts are the files of the page's program, in order: each uses only those before.
var scripts = []string{"model.js", "axis.js", "names.js", "draw.js", "panel.js", "app.js", "input.js"}

// WriteHTML writes a page that shows runs in swim lanes, as one file that needs nothing
// else. Whatever the records contain appears as text.
func WriteHTML(w io.Writer, p Page) error {
	data, err := p.data()
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	program, err := program()
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	err = htmlpage.Execute(w, files, program, map[string]any{"Title": cmp.Or(p.Title, "Trace"), "Data": template.JS(data)})
	if err != nil {
		return fmt.Errorf("report: writing the page: %w", err)
	}
	return nil
}

func (p Page) validate() error {
	switch n := len(p.Runs); n {
	case 0:
		return errors.New("the page has no run: give it one, or two to compare")
	case 1, 2:
		return nil
	default:
		return fmt.Errorf("the page has %d runs: it shows one, or compares two", n)
	}
}

// program is one function, so that its names stay its own.
func program() (string, error) {
	program := "\"use strict\";\n(() => {\n"
	for _, name := range scripts {
		text, err := files.ReadFile("page/" + name)
		if err != nil {
			return "", err
		}
		program += string(text)
	}
	return program + "})();\n", nil
}
