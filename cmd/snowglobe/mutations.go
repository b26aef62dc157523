package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"snowglobe.test/scenarios"
)

// errMutations is the error of a run in which a script passed though it was mutated.
var errMutations = errors.New("mutations went unnoticed")

// runMutations runs scripts under each of their mutations, and fails if one passes.
func runMutations(ctx context.Context, out io.Writer, scripts []scenarios.Script, run scenarios.Options, parallel int) error {
	mutants, names, err := mutate(scripts)
	if err != nil {
		return err
	}
	next, stop := iter.Pull(scenarios.RunAll(ctx, mutants, run, parallel))
	defer stop()
	color, unnoticed := wantsColor(out), 0
	for i, script := range scripts {
		fmt.Fprintf(out, "%s  %s\n", paint(color, bold, "━━ "+script.Name), paint(color, faint, script.File))
		if len(names[i]) == 0 {
			fmt.Fprintln(out, "  it lists no mutation")
			unnoticed++
		}
		for _, name := range names[i] {
			result, _ := next()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if result.Status == scenarios.Failed {
				fmt.Fprintf(out, "  %s %s\n      %v\n", paint(color, green, "✓ fails"), name, result.Err)
				continue
			}
			unnoticed++
			fmt.Fprintf(out, "  %s %s\n", paint(color, red, "✗ "+string(result.Status)), name)
		}
	}
	if unnoticed > 0 {
		return fmt.Errorf("%d %w", unnoticed, errMutations)
	}
	return nil
}

// mutate returns the mutants of all scripts in order, and for each script the names of its
// mutations.
func mutate(scripts []scenarios.Script) (mutants []scenarios.Script, names [][]string, err error) {
	names = make([][]string, len(scripts))
	for i, script := range scripts {
		mutations, err := script.Mutations()
		if err != nil {
			return nil, nil, err
		}
		for _, mutation := range mutations {
			mutant, err := script.Mutate(mutation)
			if err != nil {
				return nil, nil, err
			}
			mutants = append(mutants, mutant)
			names[i] = append(names[i], mutation.Name)
		}
	}
	return mutants, names, nil
}
