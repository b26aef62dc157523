package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newBuild() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build the program with all mutants",
		Long: `Build the program with all mutants, from copies of upstream's modules in the user's
cache folder. The first time this takes 5 to 10 minutes of two cores; later only what has
changed is built, which is mostly this repository and takes half a minute.`,
		Example: `  go -C conformance/mutants run . build`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := open(cmd.Context(), false, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer b.close()
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d mutants in %s\n", len(b.built.Mutants), b.built.Program)
			return err
		},
	}
}
