package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/script"
	"snowglobe.test/scenarios/story"
)

// errMutations is the error of a run in which a script passed though it was mutated.
var errMutations = errors.New("mutations went unnoticed")

// runMutations runs scripts under each of their mutations, and fails if one passes.
func runMutations(ctx context.Context, out io.Writer, scripts []script.Script, run scenarios.Options, parallel int) error {
	var mutants []script.Script
	var names []string // of the mutations
	color, unnoticed := wantsColor(out), 0
	for _, one := range scripts {
		mutations, err := one.Mutations()
		if err != nil {
			return err
		}
		if len(mutations) == 0 {
			fmt.Fprintf(out, "%s lists no mutation\n", one.File)
			unnoticed++
		}
		for _, mutation := range mutations {
			mutant, err := one.Mutate(mutation)
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
		if result.Status == scenarios.NotRun {
			return result.Err
		}
		if mutant := mutants[done]; done == 0 || mutant.File != mutants[done-1].File {
			fmt.Fprintf(out, "%s  %s\n", story.Paint(color, bold, "━━ "+mutant.Name), story.Paint(color, faint, mutant.File))
		}
		if result.Status == scenarios.Failed {
			fmt.Fprintf(out, "  %s %s\n      %v\n", story.Paint(color, green, "✓ fails"), names[done], result.Err)
		} else {
			unnoticed++
			fmt.Fprintf(out, "  %s %s\n", story.Paint(color, red, "✗ "+string(result.Status)), names[done])
		}
		done++
	}
	if unnoticed > 0 {
		return verdict(fmt.Errorf("%d %w", unnoticed, errMutations))
	}
	return nil
}
