package results

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
)

// Format is a form a report can be written in.
type Format string

const (
	FormatText      Format = "text" // a table for people
	FormatJSON      Format = "json" // the whole report
	FormatBenchmark Format = "go"   // Go benchmark lines, for benchstat
)

// Set sets the format by its name, as flags do.
func (f *Format) Set(name string) error {
	switch format := Format(name); format {
	case FormatText, FormatJSON, FormatBenchmark:
		*f = format
		return nil
	}
	return fmt.Errorf("output format %q is unknown; use %s, %s or %s", name, FormatText, FormatJSON, FormatBenchmark)
}

func (f *Format) String() string { return string(*f) }

// Type is what the help calls the flag's value.
func (*Format) Type() string { return "string" }

// Report is the result of a measurement.
type Report interface {
	WriteText(w *bytes.Buffer)
	WriteBenchmark(w *bytes.Buffer)
}

// Write writes a report in a format.
func Write(w io.Writer, format Format, r Report) error {
	if err := format.Set(string(cmp.Or(format, FormatText))); err != nil {
		return err
	}
	var err error
	text := &bytes.Buffer{}
	switch format {
	case FormatJSON:
		encoder := json.NewEncoder(text)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(r)
	case FormatBenchmark:
		r.WriteBenchmark(text)
	default:
		r.WriteText(text)
	}
	if err != nil {
		return fmt.Errorf("write report as %s: %w", format, err)
	}
	if _, err := w.Write(text.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
