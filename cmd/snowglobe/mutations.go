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
func runMutations(ctx context.Context, out io.Writer, scripts []scenarios.Script, run scenarios.Options, parallel int) error {
	var mutants []scenarios.Script
	var names []string // of the mutations
	color, unnoticed := wantsColor(out), 0
	for _, script := range scripts {
		mutations, err := script.Mutations()
		if err != nil {
			return err
		}
		if len(mutations) == 0 {
			fmt.Fprintf(out, "%s lists no mutation\n", script.File)
			unnoticed++
		}
		for _, mutation := range mutations {
			mutant, err := script.Mutate(mutation)
			if err != nil {
				return err
			}
			mutants, names = append(mutants, mutant), append(names, mutation.Name)
		}
	}
	done := 0
	for result := range scenarios.RunAll(ctx, mutants, run, parallel) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if script := mutants[done]; done == 0 || script.File != mutants[done-1].File {
			fmt.Fprintf(out, "%s  %s\n", paint(color, bold, "━━ "+script.Name), paint(color, faint, script.File))
		}
		if result.Status == scenarios.Failed {
			fmt.Fprintf(out, "  %s %s\n      %v\n", paint(color, green, "✓ fails"), names[done], result.Err)
		} else {
			unnoticed++
			fmt.Fprintf(out, "  %s %s\n", paint(color, red, "✗ "+string(result.Status)), names[done])
		}
		done++
	}
	if unnoticed > 0 {
		return fmt.Errorf("%d %w", unnoticed, errMutations)
	}
	return nil
}
