package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/sim"
	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/outfile"
	"snowglobe.test/scenarios"
	"snowglobe.test/scenarios/engine"
	"snowglobe.test/scenarios/script"
)

// runOptions are the flags of "run".
type runOptions struct {
	realTime  bool
	seed      uint64
	sim       bool
	search    sim.Search
	faults    string
	trace     string
	events    string
	report    string
	perfetto  string
	mutations bool
	parallel  int
	verbose   bool
	output    string
	lines     bool // one for each story, as the user asked for none by name
}

func newRun() *cobra.Command {
	opts := runOptions{}
	cmd := &cobra.Command{
		Use:   "run [SCRIPT...]",
		Short: "Run scenario scripts and show what happened",
		Long: `Run scenario scripts, each in virtual time and on its own store, and show what
happened. SCRIPT is a file, a folder of scripts, or the name of a script in the
library. Without one the whole library runs, with a line for each story as it ends; -v
tells them all. docs/reference/scripts.md describes the script commands.`,
		Example: `  snowglobe run
  snowglobe run stale-read
  snowglobe run --seed 7 --faults plan.faults --trace a.trace ./my-script.txtar
  snowglobe run --seed 7 --strategy pos ./my-script.txtar
  snowglobe run --real-time --events events.jsonl ./my-script.txtar`,
		ValidArgsFunction: completeScripts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(opts.output); err != nil {
				return err
			}
			scripts, err := scenarios.Find(args...)
			if err != nil {
				return failed(err)
			}
			if opts.reports() && len(scripts) != 1 {
				return fmt.Errorf("--report and --perfetto show one script, not %d; name one", len(scripts))
			}
			if opts.parallel < 1 {
				return fmt.Errorf("--parallel is %d; run at least one script at a time", opts.parallel)
			}
			if err := checkScripts(cmd.ErrOrStderr(), scripts...); err != nil {
				return err
			}
			if len(args) > 0 && leftOut(scripts...) {
				return runWhole(cmd)
			}
			own, err := ownSeed(scripts)
			if err != nil {
				return err
			}
			if err := opts.checkSearch(cmd.Flags().Changed("seed") || own); err != nil {
				return err
			}
			if (cmd.Flags().Changed("seed") || own) && opts.sim && !opts.realTime && !sim.Enabled() {
				return runInSim(cmd, args)
			}
			run := scenarios.Options{
				Search:   opts.search,
				RealTime: opts.realTime, Verbose: opts.verbose, FullTrace: opts.trace != "" || opts.reports(),
			}
			if inForeground() {
				run.Prompt = &engine.Prompt{In: cmd.InOrStdin(), Out: cmd.ErrOrStderr()}
			}
			if cmd.Flags().Changed("seed") {
				run.Seed = &opts.seed
				opts.parallel = 1 // what runs beside a script is not decided by the seed
			}
			if opts.faults != "" {
				if run.Faults, err = fault.ReadPlan(opts.faults, nil); err != nil {
					return failed(err)
				}
			}
			opts.lines = len(args) == 0 && !opts.verbose
			collectSeldom()
			time.Local = time.UTC // wherever the machine is, also for CronJobs and kubectl
			defer endForSure(cmd.Context(), cmd.ErrOrStderr(), endDelay, endAtOnce)()
			return failed(runScripts(cmd.Context(), cmd.OutOrStdout(), scripts, opts, run))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&opts.realTime, "real-time", false, "run in real time; scripts that need hours skip themselves")
	flags.Uint64Var(&opts.seed, "seed", 0, "the seed for the order in which operations take turns in virtual time, and for the random choices of --faults; the default is the script's own seed")
	flags.BoolVar(&opts.sim, "sim", true, "with a seed, run in sim mode, where the seed decides everything; the first time, this needs a build that takes minutes")
	searchVar(flags, &opts.search, sim.StrategiesAlone(), "random")
	flags.StringVar(&opts.faults, "faults", "", "a `file` of fault rules for every server of the scripts, one rule per line")
	flags.StringVar(&opts.trace, "trace", "", "write the canonical trace to this `file`: byte for byte the same text if clients could observe the same things (see trace diff)")
	flags.StringVar(&opts.events, "events", "", "write every event to this `file`, as JSON lines")
	flags.StringVar(&opts.report, "report", "", "write an HTML page with the script's timeline, in swim lanes, to this `file`")
	flags.StringVar(&opts.perfetto, "perfetto", "", "write the same timeline to this `file` for ui.perfetto.dev")
	flags.BoolVar(&opts.mutations, "mutations", false, "run each script under each of its mutations (mutations.yaml); it must fail under every one")
	parallelVar(flags, &opts.parallel, "how many scripts to run at a time; with a seed, one")
	flags.BoolVarP(&opts.verbose, "verbose", "v", false, "show all events except the servers' routine ones, the output of every command, and the server's log when a script fails")
	flags.StringVarP(&opts.output, "output", "o", outputText, "text, or json with one line for each script")
	return cmd
}

// checkSearch reports what is wrong with --strategy and --depth.
func (o *runOptions) checkSearch(seeded bool) error {
	switch {
	case o.search == sim.Search{}:
		return nil
	case !seeded:
		return errors.New("--strategy is how a seed chooses: say which, by --seed")
	case !o.sim || o.realTime:
		return errors.New("--strategy is for sim mode: leave --sim=false and --real-time out")
	}
	return o.search.CheckAlone()
}

// The output formats that most commands support.
const (
	outputText = "text"
	outputJSON = "json"
)

// checkOutput returns an error for any other format.
func checkOutput(output string) error {
	if output != outputText && output != outputJSON {
		return fmt.Errorf("output %q is not known; use %s or %s", output, outputText, outputJSON)
	}
	return nil
}

// checkScripts tells what is wrong with scripts, a line for each mistake, before any is run.
func checkScripts(out io.Writer, scripts ...script.Script) error {
	mistakes := 0
	for _, one := range scripts {
		for _, mistake := range engine.Mistakes(scenarios.Validate(one)) {
			mistakes++
			fmt.Fprintln(out, mistake)
		}
	}
	if mistakes > 0 {
		return failed(fmt.Errorf("nothing was run: mistakes in scripts: %d", mistakes))
	}
	return nil
}

// endForSure ends the process when it does not end in time after ctx has: virtual time
// that stands still can keep it from it. done calls that off.
func endForSure(ctx context.Context, stderr io.Writer, delay time.Duration, exit func(int)) (done func()) {
	ended, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-ended.Done():
		case <-time.After(delay):
			fmt.Fprintf(stderr, "snowglobe: ended at once: it did not end within %s\n", delay)
			exit(exitInterrupted)
		}
	})
	return func() { stop(); end() }
}

// collectSeldom trades memory for time unless GOGC says otherwise: collecting the garbage of
// one control plane after another is a quarter of the CPU time of scripts.
func collectSeldom() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// ownSeed reports whether a script says its seed. What a seed decides also depends on
// what has run in the process, so such a script runs by itself.
func ownSeed(scripts []script.Script) (bool, error) {
	i := slices.IndexFunc(scripts, func(one script.Script) bool {
		_, seeded := one.Seed()
		return seeded
	})
	if i >= 0 && len(scripts) > 1 {
		return false, fmt.Errorf("%s has a seed of its own, so it is run by itself; name it alone", scripts[i].File)
	}
	return i >= 0, nil
}

func completeScripts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, one := range scenarios.Library() {
		names = append(names, one.Name+"\t"+one.Title())
	}
	return names, cobra.ShellCompDirectiveDefault
}

// errScripts is the error of a run in which a script failed.
var errScripts = errors.New("scripts failed")

func runScripts(ctx context.Context, out io.Writer, scripts []script.Script, opts runOptions, run scenarios.Options) (err error) {
	canonical, err := openTrace(opts.trace, trace.WriteCanonical)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, canonical.close()) }()
	events, err := openTrace(opts.events, trace.WriteJSON)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, events.close()) }()
	// The timelines can be written, or nothing starts; what an earlier run has written stays until then.
	if err := outfile.Try(opts.report, opts.perfetto); err != nil {
		return err
	}
	if opts.mutations {
		return runMutations(ctx, out, scripts, run, opts.parallel)
	}
	var report reporter = &storyReporter{out: out, color: wantsColor(out), verbose: opts.verbose}
	if opts.lines {
		report = newLineReporter(out, scripts)
	}
	if opts.output == outputJSON {
		report = jsonReporter{json.NewEncoder(out)}
	}
	began := time.Now()
	var results []scenarios.Result
	report.begin(scripts[0])
	for result := range scenarios.RunAll(ctx, scripts, run, opts.parallel) {
		results = append(results, result)
		if err := errors.Join(report.script(result), canonical.write(result), events.write(result), opts.writeReports(result)); err != nil {
			return errors.Join(judge(results), err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(results) < len(scripts) {
			report.begin(scripts[len(results)])
		}
	}
	return errors.Join(judge(results), report.summarize(results, time.Since(began)))
}

// judge is the verdict on scripts that have run.
func judge(results []scenarios.Result) error {
	counts := map[scenarios.Status]int{}
	for _, result := range results {
		counts[result.Status]++
	}
	switch {
	case counts[scenarios.Failed] > 0:
		return verdict(fmt.Errorf("%d of %d %w", counts[scenarios.Failed], len(results), errScripts))
	case counts[scenarios.NotRun] > 0:
		return fmt.Errorf("%d of %d scripts could not be run", counts[scenarios.NotRun], len(results))
	}
	return nil
}

// reporter reports how scripts went.
type reporter interface {
	begin(next script.Script)
	script(result scenarios.Result) error
	summarize(results []scenarios.Result, wall time.Duration) error
}

// jsonReporter reports to programs: one JSON object a line for each script.
type jsonReporter struct{ out *json.Encoder }

func (r jsonReporter) begin(script.Script) {}

func (r jsonReporter) script(result scenarios.Result) error {
	line := struct {
		Script      string           `json:"script"`
		File        string           `json:"file"`
		Status      scenarios.Status `json:"status"`
		Error       string           `json:"error,omitempty"`
		Reason      string           `json:"reason,omitempty"`
		ScriptNanos time.Duration    `json:"scriptNanos"` // in the script's clock
		WallNanos   time.Duration    `json:"wallNanos"`
	}{result.Script.Name, result.Script.File, result.Status, "", result.Reason, result.Scripted, result.Wall}
	if result.Err != nil {
		line.Error = result.Err.Error()
	}
	return r.out.Encode(line)
}

func (r jsonReporter) summarize([]scenarios.Result, time.Duration) error { return nil }
