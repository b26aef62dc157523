package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"snowglobe.test/envtest/trace"
)

func newTrace() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "trace",
		Short:   "Work with traces written by run --trace",
		Example: `  snowglobe trace diff a.trace b.trace`,
	}
	cmd.AddCommand(newTraceDiff())
	return cmd
}

// errTracesDiffer is the error of a comparison that found a difference.
var errTracesDiffer = errors.New("the traces differ")

func newTraceDiff() *cobra.Command {
	return &cobra.Command{
		Use:   "diff A B",
		Short: "Show where two traces begin to differ, and how",
		Long: `Compare two traces written by run --trace: show where they begin to differ, what
they have in common just before, and how they go on from there. The exit code is 0
if they are the same, and 1 if not.`,
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
			difference := trace.Diff(texts[0], texts[1])
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), difference); err != nil {
				return err
			}
			if !difference.Same() {
				return failed(errTracesDiffer)
			}
			return nil
		},
	}
}
