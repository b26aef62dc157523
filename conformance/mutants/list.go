package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"snowglobe.test/conformance/mutants/mutation"
	"snowglobe.test/conformance/mutants/trial"
)

func newList() *cobra.Command {
	var system, output string
	var unreached bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Print the mutants of the program that was built last",
		Example: `  go -C conformance/mutants run . list --system S7
  go -C conformance/mutants run . list --unreached --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := known(output); err != nil {
				return err
			}
			b, err := open(cmd.Context(), true, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer b.close()
			mutants := b.built.Mutants
			if unreached {
				baseline, err := measured(cmd.Context(), b.built, false, cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				mutants = within(mutants, baseline, false)
			}
			return list(cmd.OutOrStdout(), ofSystem(mutants, system), output)
		},
	}
	cmd.Flags().StringVar(&system, "system", "", "only the mutants of this `system`, such as S7")
	cmd.Flags().BoolVar(&unreached, "unreached", false, "only those that no case reaches")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// known refuses an output format that is not known.
func known(output string) error {
	if output != "text" && output != "json" {
		return fmt.Errorf("mutants: output %q is not known; use text or json", output)
	}
	return nil
}

func list(w io.Writer, mutants []mutation.Mutant, output string) error {
	if output == "json" {
		return writeJSON(w, mutants)
	}
	for _, m := range mutants {
		if _, err := fmt.Fprintf(w, "%-4s %s (line %d)\n     %s\n", m.System, m.ID, m.Line, m.Change); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON leaves <, > and & as they are, which source is full of.
func writeJSON(w io.Writer, document any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

// ofSystem are the mutants of a system, or all if it is empty.
func ofSystem(mutants []mutation.Mutant, system string) []mutation.Mutant {
	return slices.DeleteFunc(slices.Clone(mutants),
		func(m mutation.Mutant) bool { return system != "" && m.System != system })
}

// within are the mutants that anything reaches, if reached, or else those that nothing does.
func within(mutants []mutation.Mutant, baseline *trial.Baseline, reached bool) []mutation.Mutant {
	all := baseline.Reached()
	return slices.DeleteFunc(slices.Clone(mutants), func(m mutation.Mutant) bool { return all[m.Switch] != reached })
}
