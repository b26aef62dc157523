package results

import (
	"bytes"
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

// ParseFormat parses the name of a format. An empty name means FormatText.
func ParseFormat(name string) (Format, error) {
	switch format := Format(name); format {
	case "":
		return FormatText, nil
	case FormatText, FormatJSON, FormatBenchmark:
		return format, nil
	}
	return "", fmt.Errorf("output format %q is unknown; use %s, %s or %s", name, FormatText, FormatJSON, FormatBenchmark)
}

// Report is the result of a measurement.
type Report interface {
	WriteText(w *bytes.Buffer)
	WriteBenchmark(w *bytes.Buffer)
}

// Write writes a report in a format.
func Write(w io.Writer, format Format, r Report) error {
	format, err := ParseFormat(string(format))
	if err != nil {
		return err
	}
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
