package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/scenarios"
)

func newTrace() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "trace",
		Short:   "Work with traces written by run --trace and run --events",
		Example: `  snowglobe trace diff a.trace b.trace`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTraceDiff(), newTraceReport())
	return cmd
}

// errTracesDiffer is the error of a comparison that found a difference.
var errTracesDiffer = errors.New("the traces differ")

func newTraceDiff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff A B",
		Short: "Show where two traces begin to differ, and how",
		Long: `Compare two traces written by run --trace: show where they begin to differ, what
they have in common just before that, and how each continues from there. The exit code
is 0 if they are the same, and 1 if they are not.`,
		Example: `  snowglobe run --seed 1 --trace a.trace stale-read
  snowglobe run --seed 2 --trace b.trace stale-read
  snowglobe trace diff a.trace b.trace`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var texts [2]string
			for i, path := range args {
				text, err := os.ReadFile(path)
				if err != nil {
					return failed(fmt.Errorf("trace: %w", err))
				}
				texts[i] = string(text)
			}
			divergence := trace.DivergenceOf(texts[0], texts[1])
			fmt.Fprint(cmd.OutOrStdout(), divergence.Words(args[0], args[1]))
			if divergence.Same() {
				return nil
			}
			return verdict(errTracesDiffer)
		},
	}
}

// traceFile writes the records of all scripts to a file; a nil one writes nothing.
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
		return nil, fmt.Errorf("trace: %w", onDisk(path, err))
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
		return fmt.Errorf("trace: %w", onDisk(t.file.Name(), err))
	}
	return nil
}

func (t *traceFile) close() error {
	if t == nil {
		return nil
	}
	if err := t.file.Close(); err != nil {
		return fmt.Errorf("trace: %w", onDisk(t.file.Name(), err))
	}
	return nil
}
