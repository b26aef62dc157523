package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/internal/nearest"
	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/explore"
	"snowglobe.test/scenarios/explore/worker"
	"snowglobe.test/scenarios/script"
)

// exploreOptions are the flags of "explore".
type exploreOptions struct {
	seeds    int
	first    uint64
	forTime  time.Duration
	shard    string
	workers  int
	faults   string
	corpus   string
	failures int
	shrink   int
	boots    bool
	replay   string
	sim      bool
	search   sim.Search
	output   string
}

// exploreWorkers is the default of --workers.
const exploreWorkers = 2

// exploreReplays is how often --replay runs a script without --seeds.
const exploreReplays = 20

func newExplore() *cobra.Command {
	opts := exploreOptions{}
	cmd := &cobra.Command{
		Use:   "explore SCRIPT",
		Short: "Search for seeds and faults under which a script fails",
		Long: `Run a script again and again in sim mode, each time in a process of its own, with a different
seed and a different plan of faults, drawn from the points that the script touches. Cases
that show a new interleaving of events are kept and varied first. Each run ends with a check of
everything that clients were told (see the script command "check").

Whatever fails is repeated, shrunk and written to the corpus as a separate script, which
"snowglobe run" repeats and a person can read. A run fails if a command fails, a server
exits by itself, a check finds a promise broken, or virtual time stands still.

Runs begin where the script has the command "reseed", or else after its first start, unless
a command before that may change how it goes, or with --boots: then each run boots. On Linux
all runs have what comes before in common, in copies of one process.

By default, faults only slow down and reorder operations (delay) and end watches (break,
unless the script has a plain watch, which is not restarted): a correct script passes
under them. Others (--faults) can make it fail for good reasons.

The corpus is a folder of plain files. To explore on several machines, give each one
a --shard i/n, and copy their files into one folder.`,
		Example: `  snowglobe explore --seeds 500 race.txtar
  snowglobe explore --for 10m --corpus race.explore --faults delay,hold,crash race.txtar
  snowglobe explore --seeds 500 --strategy pos race.txtar
  snowglobe explore --seeds 10000 --shard 3/8 --output json race.txtar
  snowglobe explore --replay race.explore/failures/crash-hook.txtar`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeScripts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(opts.output); err != nil {
				return err
			}
			if opts.replay != "" {
				return opts.runReplay(cmd, args)
			}
			config, err := opts.config(cmd, args)
			if err != nil {
				return err
			}
			if leftOut(config.Script) {
				return runWhole(cmd)
			}
			return failed(opts.explore(cmd, config))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&opts.seeds, "seeds", 0, "how many runs to make across all shards, each with its own seed; the default is 100, or no limit with --for")
	flags.Uint64Var(&opts.first, "first-seed", 1, "the seed of the first run")
	flags.DurationVar(&opts.forTime, "for", 0, "how long to explore at most, such as 10m; failures found are shrunk after that")
	flags.StringVar(&opts.shard, "shard", "1/1", "which part of the runs to make, `i/n`")
	flags.IntVar(&opts.workers, "workers", exploreWorkers, "how many processes to run at once; each uses one CPU")
	flags.StringVar(&opts.faults, "faults", "", "the `classes` of faults to draw from, separated by commas: "+strings.Join(nearest.Texts(explore.Classes()), ", ")+"; the default is delay and, for scripts without a plain watch, break")
	flags.BoolVar(&opts.boots, "boots", false, "vary the start of the first servers, too")
	flags.StringVar(&opts.corpus, "corpus", "", "the `folder` to keep findings in; the default is SCRIPT.explore in the current folder")
	flags.IntVar(&opts.failures, "failures", 0, "stop after this many different failures; 0 means never")
	flags.IntVar(&opts.shrink, "shrink", 400, "the maximum number of runs to spend on shrinking a failure")
	searchVar(flags, &opts.search, sim.StrategiesAlone(), "random")
	flags.StringVar(&opts.replay, "replay", "", "run this script, which explore wrote, 20 times or --seeds times, and say how often it fails in the same way")
	flags.BoolVar(&opts.sim, "sim", true, "run in sim mode, where a run can be repeated; the first time, this needs a build that takes minutes")
	flags.StringVarP(&opts.output, "output", "o", outputText, "text or json")
	return cmd
}

// config checks the flags and the script, before anything starts.
func (o *exploreOptions) config(cmd *cobra.Command, args []string) (explore.Config, error) {
	if len(args) != 1 {
		return explore.Config{}, errors.New("explore takes one script: a file, or the name of one in the library")
	}
	one, err := oneScript(cmd.ErrOrStderr(), args[0])
	if err != nil {
		return explore.Config{}, err
	}
	config := explore.Config{
		Script: one, Runs: o.seeds, First: o.first, For: o.forTime, Workers: o.workers, Shrink: o.shrink, Boots: o.boots,
	}
	if o.failures > 0 {
		config.Enough = func(found []*explore.Found) bool { return len(found) >= o.failures }
	}
	switch {
	case cmd.Flags().Changed("seeds") && o.seeds < 1:
		return config, fmt.Errorf("--seeds is a number above 0, not %d", o.seeds)
	case cmd.Flags().Changed("for") && o.forTime <= 0:
		return config, fmt.Errorf("--for is a time above 0, such as 10m, not %s", o.forTime)
	case o.workers < 1 || o.workers > math.MaxInt16:
		return config, fmt.Errorf("--workers is a number above 0, not %d", o.workers)
	case o.shrink < 1:
		return config, fmt.Errorf("--shrink is a number above 0, not %d", o.shrink)
	case o.search != (sim.Search{}) && !o.sim:
		return config, errors.New("--strategy is for sim mode: leave --sim=false out")
	case o.failures < 0:
		return config, fmt.Errorf("--failures is a number from 0 on, not %d", o.failures)
	}
	if config.Shard, err = explore.ParseShard(o.shard); err != nil {
		return config, fmt.Errorf("--shard: %w", err)
	}
	if o.search != (sim.Search{}) {
		if err := o.search.CheckAlone(); err != nil {
			return config, err
		}
		config.Script = explore.Searching(one, o.search.String())
	}
	if o.faults != "" {
		if config.Classes, err = explore.ParseClasses(o.faults); err != nil {
			return config, fmt.Errorf("--faults: %w", err)
		}
	}
	o.corpus = cmp.Or(o.corpus, one.Name+".explore")
	if config.Corpus, err = explore.OpenCorpus(o.corpus); err != nil {
		return config, failed(err)
	}
	return config, nil
}

// oneScript finds the script that a name stands for, and checks it.
func oneScript(stderr io.Writer, name string) (script.Script, error) {
	scripts, err := scenarios.Find(name)
	if err != nil {
		return script.Script{}, failed(err)
	}
	if len(scripts) != 1 {
		return script.Script{}, fmt.Errorf("%s has %d scripts; name one", name, len(scripts))
	}
	if err := checkScripts(stderr, scripts...); err != nil {
		return script.Script{}, err
	}
	return scripts[0], nil
}

// runner returns what runs scripts in processes of this program, and what to call at the end.
func (o *exploreOptions) runner(cmd *cobra.Command) (explore.Runner, func() error, error) {
	if !o.sim {
		program, err := os.Executable()
		return worker.Process{Program: program}, func() error { return nil }, err
	}
	runner, end, err := worker.Runner(cmd.Context(), sourceFolder(), importPath, cmd.ErrOrStderr())
	if err != nil {
		return nil, nil, fmt.Errorf("%w\nwith --sim=false a run can't be repeated", err)
	}
	return runner, end, nil
}

func (o *exploreOptions) explore(cmd *cobra.Command, config explore.Config) (err error) {
	runner, end, err := o.runner(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	config.Runner = runner
	shown := newProgress(cmd.ErrOrStderr())
	config.Progress = func(p explore.Progress) { shown.line(p.String()) }
	report, err := config.Explore(cmd.Context())
	shown.end()
	found := len(report.Failures)+len(report.Unstable) > 0
	if err != nil && !found {
		return verdictIf(err, explore.ErrFailsAlone)
	}
	err = errors.Join(err, o.write(cmd.OutOrStdout(), report, report.Text()))
	switch {
	case cmd.Context().Err() != nil:
		return context.Cause(cmd.Context())
	case found:
		return errors.Join(verdict(fmt.Errorf("%s fails; what was found is in %s", config.Script.Name, o.corpus)), err)
	}
	return err
}

// write writes a report in the format that was asked for.
func (o *exploreOptions) write(out io.Writer, report any, text string) error {
	if o.output == outputJSON {
		return json.NewEncoder(out).Encode(report)
	}
	_, err := io.WriteString(out, text)
	return err
}

// runReplay runs a script again and again, and tells whether it always fails alike.
func (o *exploreOptions) runReplay(cmd *cobra.Command, args []string) (err error) {
	if len(args) > 0 {
		return errors.New("--replay names the script; leave the other out")
	}
	if o.search != (sim.Search{}) {
		return errors.New("--replay runs the script as it is, with the strategy behind its seed; leave --strategy out")
	}
	one, err := oneScript(cmd.ErrOrStderr(), o.replay)
	if err != nil {
		return err
	}
	if leftOut(one) {
		return runWhole(cmd)
	}
	times := exploreReplays
	if cmd.Flags().Changed("seeds") {
		if times = o.seeds; times < 1 {
			return fmt.Errorf("--seeds is a number above 0, not %d", o.seeds)
		}
	}
	runner, end, err := o.runner(cmd)
	if err != nil {
		return failed(err)
	}
	defer func() { err = errors.Join(err, failed(end())) }()
	result, err := explore.Replay(cmd.Context(), runner, one, times, o.workers)
	if err != nil {
		return failed(err)
	}
	if err = o.write(cmd.OutOrStdout(), result, result.String()); len(result.Failures) > 0 {
		return errors.Join(verdict(fmt.Errorf("%s fails", one.Name)), err)
	}
	return failed(err)
}
