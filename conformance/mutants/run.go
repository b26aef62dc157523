package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"snowglobe.test/conformance/mutants/mutation"
	"snowglobe.test/conformance/mutants/trial"
)

// runOptions are the flags of run.
type runOptions struct {
	ids               []string
	system            string
	sample, each      int
	seed              uint64
	fresh, open, keep bool
	last              bool
	trials
}

// trials are the flags of whatever runs mutants.
type trials struct {
	parallel        int
	together        int
	limit, patience time.Duration
	realTime        bool
	output          string
}

func (t *trials) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&t.parallel, "parallel", runtime.GOMAXPROCS(0), "how many `processes` run side by side")
	flags.DurationVar(&t.limit, "limit", 3*time.Minute, "begin no further case on a mutant after this time")
	flags.DurationVar(&t.patience, "patience", time.Minute, "a process that says nothing for this time is hung")
	flags.BoolVar(&t.realTime, "real-time", false, "run the cases in real time")
	flags.StringVarP(&t.output, "output", "o", "text", "text or json")
}

func newRun() *cobra.Command {
	var opts runOptions
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Give mutants to the cases that reach them, until one kills each",
		Long: `Give mutants to the cases that reach them, those of the mutant's own system and the
cheap ones first, until one fails: the mutant is killed. A process that crashes or hangs
counts as well, and is told apart. A mutant that is reached while the control plane
starts is given to all cases.`,
		Example: `  go -C conformance/mutants run . run --sample 10 --seed 7
  go -C conformance/mutants run . run --each 5 --fresh --keep
  go -C conformance/mutants run . run --system S19 --open --together 8
  go -C conformance/mutants run . run --id apiserver/pkg/audit/request.go:LogRequestObject:skip:3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return opts.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&opts.ids, "id", nil, "the mutants with these `IDs`")
	flags.StringVar(&opts.system, "system", "", "only mutants of this `system`, such as S7")
	flags.IntVar(&opts.sample, "sample", 0, "a sample of this many mutants")
	flags.IntVar(&opts.each, "each", 0, "a sample of this many mutants of each system")
	flags.Uint64Var(&opts.seed, "seed", 1, "the seed of the sample")
	flags.BoolVar(&opts.fresh, "fresh", false, "only mutants about which nothing is kept")
	flags.BoolVar(&opts.open, "open", false, "only mutants that survived the last time, and not for a known reason")
	flags.BoolVar(&opts.last, "last", false, "use the program that was built last, as it is")
	flags.IntVar(&opts.together, "together", 1, "how many `mutants` are on in one process, which is quick for those "+
		"that survive")
	flags.BoolVar(&opts.keep, "keep", false, "keep the verdicts in verdicts.json")
	opts.trials.flags(cmd)
	cmd.MarkFlagsMutuallyExclusive("sample", "each", "id")
	cmd.MarkFlagsMutuallyExclusive("fresh", "open")
	return cmd
}

func (o *runOptions) run(cmd *cobra.Command) error {
	if err := known(o.output); err != nil {
		return err
	}
	ctx, progress := cmd.Context(), cmd.ErrOrStderr()
	b, err := open(ctx, o.last, progress)
	if err != nil {
		return err
	}
	defer b.close()
	kept, err := readKept(b.root)
	if err != nil {
		return err
	}
	built := b.built
	baseline, err := measured(ctx, built, o.realTime, progress)
	if err != nil {
		return err
	}
	chosen, err := o.choose(built.Mutants, baseline, kept)
	if err != nil {
		return err
	}
	jobs := make([]trial.Job, 0, len(chosen))
	for _, m := range chosen {
		cases := baseline.Candidates(m.Switch, m.System)
		if len(cases) == 0 {
			return fmt.Errorf("mutants: no case reaches %s", m.ID)
		}
		jobs = append(jobs, trial.Job{Mutant: m, Cases: cases})
	}
	verdicts, err := o.all(ctx, built.Process, jobs, progress)
	if err == nil {
		verdicts, err = o.sure(ctx, built.Process, verdicts, progress)
	}
	if o.keep { // what is known, even if interrupted
		kept.Release = built.Release
		kept.Count(built.Mutants, baseline.Reached())
		kept.Add(verdicts)
		err = errors.Join(err, save(b.root, kept))
	}
	return errors.Join(err, report(cmd.OutOrStdout(), verdicts, o.output))
}

// choose returns the mutants that the flags ask for.
func (o *runOptions) choose(mutants []mutation.Mutant, baseline *trial.Baseline, kept *trial.Kept,
) ([]mutation.Mutant, error) {
	if len(o.ids) > 0 {
		found := slices.DeleteFunc(slices.Clone(mutants),
			func(m mutation.Mutant) bool { return !slices.Contains(o.ids, m.ID) })
		if len(found) < len(o.ids) {
			return nil, errors.New("mutants: not all of these are mutants of the program; list them to see their IDs")
		}
		return found, nil
	}
	chosen := ofSystem(within(mutants, baseline, true), o.system)
	switch {
	case o.fresh:
		chosen = kept.Fresh(chosen)
	case o.open:
		chosen = kept.Open(chosen)
	}
	switch {
	case o.sample > 0:
		chosen = trial.Draw(chosen, o.seed, o.sample)
	case o.each > 0:
		chosen = trial.DrawEach(chosen, o.seed, o.each)
	}
	if len(chosen) == 0 {
		return nil, errors.New("mutants: no mutant that any case reaches is as asked for; list them to see " +
			"their systems")
	}
	return chosen, nil
}

// all does all jobs, and tells progress what came of each. Interrupted, it returns the
// verdicts that there are.
func (t *trials) all(ctx context.Context, process trial.Process, jobs []trial.Job, progress io.Writer,
) ([]trial.Verdict, error) {
	var lock sync.Mutex
	var verdicts []trial.Verdict
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, t.parallel))
	of := trial.Trial{Process: process, RealTime: t.realTime, Patience: t.patience, Limit: t.limit}
	for some := range slices.Chunk(jobs, max(1, t.together)) {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			found, err := of.Of(ctx, some...)
			lock.Lock()
			defer lock.Unlock()
			for _, verdict := range found {
				verdicts = append(verdicts, verdict)
				fmt.Fprintf(progress, "%d/%d %s\n", len(verdicts), len(jobs), told(verdict))
			}
			return err
		})
	}
	err := group.Wait()
	slices.SortFunc(verdicts, func(a, b trial.Verdict) int { return strings.Compare(a.ID, b.ID) })
	return verdicts, err
}

// sure leaves out the verdicts by cases that do not pass alone without a mutant either.
func (t *trials) sure(ctx context.Context, process trial.Process, verdicts []trial.Verdict,
	progress io.Writer) ([]trial.Verdict, error) {
	of := trial.Trial{Process: process, RealTime: t.realTime, Patience: t.patience, Limit: t.limit}
	steady := map[string]bool{trial.AtStart: true, trial.AtEnd: true}
	var sure []trial.Verdict
	for _, v := range verdicts {
		if _, known := steady[v.By]; v.Result == trial.Killed && !known {
			var err error
			if steady[v.By], err = of.Steady(ctx, v.By); err != nil {
				return sure, err
			}
		}
		if v.Result == trial.Killed && !steady[v.By] {
			fmt.Fprintf(progress, "mutants: %s does not pass alone without a mutant, so that nothing is known "+
				"about %s\n", v.By, v.ID)
			continue
		}
		sure = append(sure, v)
	}
	return sure, nil
}

// report writes the verdicts.
func report(w io.Writer, verdicts []trial.Verdict, output string) error {
	if output == "json" {
		return writeJSON(w, verdicts)
	}
	_, err := io.WriteString(w, summary(verdicts))
	return err
}
