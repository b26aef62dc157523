package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/scenarios"
)

// traceFile writes the records of all scripts to a file. A nil traceFile writes
// nothing.
type traceFile struct {
	file *os.File
	form func(io.Writer, []trace.Record) error
}

func openTrace(path string, form func(io.Writer, []trace.Record) error) (*traceFile, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	return &traceFile{file, form}, nil
}

// write adds the records of a script, with the script's name before the server's.
func (t *traceFile) write(result scenarios.Result) error {
	if t == nil {
		return nil
	}
	records := slices.Clone(result.Records)
	for i := range records {
		records[i].ControlPlane = result.Script.Name + "/" + records[i].ControlPlane
	}
	if err := t.form(t.file, records); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}

func (t *traceFile) close() error {
	if t == nil {
		return nil
	}
	if err := t.file.Close(); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}
