package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"snowglobe.test/scenarios"
)

// errMutations is the error of a run in which a script passed though it was mutated.
var errMutations = errors.New("mutations went unnoticed")

// runMutations runs scripts under each of their mutations, and fails if one passes.
func runMutations(ctx context.Context, out io.Writer, scripts []scenarios.Script, run scenarios.Options) error {
	color, unnoticed := wantsColor(out), 0
	for _, script := range scripts {
		mutations, err := script.Mutations()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s  %s\n", paint(color, bold, "━━ "+script.Name), paint(color, faint, script.File))
		if len(mutations) == 0 {
			fmt.Fprintln(out, "  it lists no mutation")
			unnoticed++
		}
		for _, mutation := range mutations {
			mutant, err := script.Mutate(mutation)
			if err != nil {
				return err
			}
			result := mutant.Run(ctx, run)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if result.Status == scenarios.Failed {
				fmt.Fprintf(out, "  %s %s\n      %v\n", paint(color, green, "✓ fails"), mutation.Name, result.Err)
				continue
			}
			unnoticed++
			fmt.Fprintf(out, "  %s %s\n", paint(color, red, "✗ "+string(result.Status)), mutation.Name)
		}
	}
	if unnoticed > 0 {
		return fmt.Errorf("%d %w", unnoticed, errMutations)
	}
	return nil
}
