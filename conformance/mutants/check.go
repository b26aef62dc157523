package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"snowglobe.test/conformance/mutants/mutation"
	"snowglobe.test/conformance/mutants/trial"
)

func newCheck() *cobra.Command {
	var opts trials
	var sample int
	var seed uint64
	var last bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check that mutants that were killed are still killed by the same case",
		Long: `Check that mutants of verdicts.json that were killed are still killed, each by the case
that is named there: one control plane and one case for a mutant. The exit code is 1
if one is not.`,
		Example: `  go -C conformance/mutants run . check --sample 10 --seed 7`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := known(opts.output); err != nil {
				return err
			}
			ctx, progress := cmd.Context(), cmd.ErrOrStderr()
			b, err := open(ctx, last, progress)
			if err != nil {
				return err
			}
			defer b.close()
			kept, err := readKept(b.root)
			if err != nil {
				return err
			}
			jobs, err := killed(kept, b.built.Mutants)
			if err != nil {
				return err
			}
			if sample > 0 {
				jobs = trial.DrawJobs(jobs, seed, sample)
			}
			verdicts, err := opts.all(ctx, b.built.Process, jobs, progress)
			if err != nil {
				return err
			}
			return errors.Join(report(cmd.OutOrStdout(), verdicts, opts.output), missed(verdicts))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&sample, "sample", 10, "a sample of this many mutants; 0 means all")
	flags.Uint64Var(&seed, "seed", 1, "the seed of the sample")
	flags.BoolVar(&last, "last", false, "use the program that was built last, as it is")
	opts.flags(cmd)
	return cmd
}

// killed are the mutants that a case killed, each with that case.
func killed(kept *trial.Kept, mutants []mutation.Mutant) ([]trial.Job, error) {
	byID := map[string]mutation.Mutant{}
	for _, m := range mutants {
		byID[m.ID] = m
	}
	var jobs []trial.Job
	for _, v := range kept.Verdicts {
		if v.Result != trial.Killed || v.By == trial.AtStart || v.By == trial.AtEnd {
			continue
		}
		m, ok := byID[v.ID]
		if !ok {
			return nil, fmt.Errorf("mutants: %s of verdicts.json is no mutant any more; take it out", v.ID)
		}
		jobs = append(jobs, trial.Job{Mutant: m, Cases: []string{v.By}})
	}
	return jobs, nil
}

// missed is an error that names the mutants that were not killed.
func missed(verdicts []trial.Verdict) error {
	var errs []error
	for _, v := range verdicts {
		if v.Result != trial.Killed {
			errs = append(errs, fmt.Errorf("%w: %s", errMissed, v.ID))
		}
	}
	return errors.Join(errs...)
}
