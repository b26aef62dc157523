package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"snowglobe.test/envtest/sim"
	"snowglobe.test/envtest/sim/seeds"
	"snowglobe.test/internal/tempdir"
)

// testOptions are the flags of "test".
type testOptions struct {
	seed   uint64
	seeds  string
	output string
	search sim.Search
}

func newTest() *cobra.Command {
	opts := testOptions{}
	cmd := &cobra.Command{
		Use:   "test [--seed N | --seeds N|FROM-TO] [GO-TEST-ARGUMENT...]",
		Short: "Run go test in sim mode, where a seed decides the whole run",
		Long: `Run go test with these arguments in sim mode: in each bubble of virtual time, those of
synctest.Test and of Simulate, a seed then decides everything, down to which goroutine
runs next, and a failure can be repeated. The seed is that of --seed, or else of
WithSeed. Each test binary uses one processor; packages run in parallel. The first
time, everything is rebuilt, which takes minutes; nothing is vetted unless -vet says so.

A goroutine runs until it blocks, unless --strategy says how to search further: then it
may also lose the processor before it uses a mutex, a channel, a WaitGroup or a Cond.
With --bubble each test is in a bubble, as if it called synctest.Test. The strategy is
then late unless another is given: of those that run a test once it finds most of what
is known (docs/search.md). Unless it is random, time also passes while goroutines run.
Tests that call t.Parallel, make a bubble or wait for something outside are skipped,
each with the reason. One that leaves goroutines behind which wait for ever has failed,
unless --allow-leaks says that this is nothing new.

With --seeds each package is built once, and runs in a process for each seed, as many
at a time as there are processors; -timeout is for each of them. What a failing seed
prints is shown, with the command that repeats it. All seeds run unless -failfast is
among the arguments.

The flags below have two dashes, and those of go test have one.`,
		Example: `  snowglobe test ./...
  snowglobe test --seed 7 -run TestLeaderElection -v ./controllers
  snowglobe test --seeds 100 -failfast ./controllers
  snowglobe test --seeds 100 --bubble ./workqueue`,
		DisableFlagParsing:    true,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			own, args := ownFlags(args)
			if err := cmd.Flags().Parse(own); err != nil {
				return err
			}
			if help, _ := cmd.Flags().GetBool("help"); help || len(args) == 1 && args[0] == "help" {
				return cmd.Help()
			}
			return runTest(cmd, opts, args)
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&opts.seed, "seed", 0,
		"the seed of every bubble and control plane, also of those that have one by WithSeed")
	flags.StringVar(&opts.seeds, "seeds", "", "run the tests under each of these seeds: 100, which is 1 to 100, or as in 20-30")
	searchVar(flags, &opts.search, sim.Strategies, "random, or "+sim.BubbleStrategy+" with --bubble")
	flags.BoolVar(&opts.search.Bubble, "bubble", false, "put each test into a bubble of virtual time")
	flags.BoolVar(&opts.search.Leaks, "allow-leaks", false,
		"with --bubble, a test may leave goroutines behind that wait for ever")
	flags.StringVar(&opts.output, "output", outputText, "with --seeds, text, or json with one line for each seed and package on standard output, and the rest on standard error")
	return cmd
}

// searchVar adds the flags for a search by one of the strategies, and says what the default is.
func searchVar(flags *pflag.FlagSet, search *sim.Search, strategies []string, defaults string) {
	flags.StringVar(&search.Strategy, "strategy", "",
		"how a seed chooses among interleavings: "+strings.Join(strategies, ", ")+" (default "+defaults+")")
	depth := fmt.Sprintf("with pct or swarm, how many orders a bug needs to show (default %d)", sim.DefaultDepth)
	flags.IntVar(&search.Depth, "depth", 0, depth)
}

// ownFlags takes the command's own flags out of arguments of go test.
func ownFlags(args []string) (own, rest []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, _, hasValue := strings.Cut(arg, "=")
		switch name {
		case "-args", "--args":
			return own, append(rest, args[i:]...)
		case "-h", "--help", "--bubble", "--allow-leaks":
			own = append(own, arg)
		case "--seed", "--seeds", "--output", "--strategy", "--depth":
			own = append(own, arg)
			if !hasValue && i+1 < len(args) {
				i++
				own = append(own, args[i])
			}
		default:
			rest = append(rest, arg)
		}
	}
	return own, rest
}

func runTest(cmd *cobra.Command, opts testOptions, args []string) error {
	if err := errors.Join(checkOutput(opts.output), opts.search.Check()); err != nil {
		return err
	}
	opts.search = opts.search.WithDefault()
	seeded, many := cmd.Flags().Changed("seed"), cmd.Flags().Changed("seeds")
	switch {
	case seeded && many:
		return errors.New("--seed is one seed and --seeds are many; use one of the flags")
	case opts.output != outputText && !many:
		return errors.New("--output is for --seeds; go test has -json")
	case opts.search != sim.Search{} && !seeded && !many:
		return errors.New("--strategy, --depth and --bubble are for a search by seeds: say which, by --seed or --seeds")
	case seeded && opts.search.Counts(): // it takes two runs
		opts.seeds = fmt.Sprintf("%d-%[1]d", opts.seed)
		return testSeeds(cmd, opts, args)
	case many:
		return testSeeds(cmd, opts, args)
	}
	test, err := sim.Test(cmd.Context(), args...)
	if err != nil {
		return failed(err)
	}
	test.Env = append(test.Env, opts.search.Environment()...)
	if seeded {
		test.Env = append(test.Env, sim.SeedVariable+"="+strconv.FormatUint(opts.seed, 10))
	}
	return runChild(cmd, test, func(test *exec.Cmd) error { return sim.Run(test, cmd.ErrOrStderr()) })
}

// testSeeds runs go test with this program in the place of each test binary.
func testSeeds(cmd *cobra.Command, opts testOptions, args []string) error {
	all, err := seeds.ParseRange(opts.seeds)
	if err != nil {
		return err
	}
	timeout, rest, err := takeTimeout(args)
	if err != nil {
		return err
	}
	folder, err := tempdir.Make("seeds")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = folder.Remove() }() // what is left is for the next one
	report := &seedReport{
		args: args, search: opts.search, json: opts.output == outputJSON,
		out: cmd.OutOrStdout(), progress: cmd.ErrOrStderr(), begun: time.Now(), told: map[string]bool{},
	}
	search, err := seeds.Begin(cmd.Context(), folder.Path(), runtime.NumCPU(), report.add)
	if err != nil {
		return failed(err)
	}
	defer search.End()
	instead, err := inPlaceOfBinaries(search.Socket(), all, timeout)
	if err != nil {
		return failed(err)
	}
	test, err := sim.Test(cmd.Context(), append([]string{"-timeout=0", "-exec=" + instead}, rest...)...)
	if err != nil {
		return failed(err)
	}
	test.Env = append(test.Env, opts.search.Environment()...)
	err = runChild(cmd, test, func(test *exec.Cmd) error {
		if report.json {
			test.Stdout = cmd.ErrOrStderr()
		}
		return sim.Run(test, cmd.ErrOrStderr())
	})
	search.End()
	report.summarize()
	return err
}

// runSeedsName, as first argument, makes this program stand in for a test binary.
const runSeedsName = "run-seeds"

// inPlaceOfBinaries is what go test -exec gets.
func inPlaceOfBinaries(socket string, all seeds.Range, timeout time.Duration) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	words := []string{program, runSeedsName, socket, all.String(), timeout.String()}
	for i, word := range words {
		if strings.ContainsAny(word, `'"`) {
			return "", fmt.Errorf("go test -exec can't name %s, which has a quotation mark", word)
		}
		words[i] = "'" + word + "'"
	}
	return strings.Join(words, " "), nil
}

// takeTimeout takes -timeout out of arguments of go test, which would end a search. It
// refuses -exec.
func takeTimeout(args []string) (timeout time.Duration, rest []string, err error) {
	timeout = 10 * time.Minute // go test's own default
	for i := 0; i < len(args); i++ {
		name, value, hasValue := strings.Cut(args[i], "=")
		switch strings.TrimPrefix(name, "-") {
		case "-args", "args":
			return timeout, append(rest, args[i:]...), nil
		case "-exec", "exec":
			return 0, nil, errors.New("--seeds runs the test binaries itself, and go test has only one -exec; leave it out")
		case "-timeout", "timeout", "-test.timeout", "test.timeout":
			if !hasValue && i+1 < len(args) {
				i++
				value = args[i]
			}
			if timeout, err = time.ParseDuration(value); err != nil {
				return 0, nil, fmt.Errorf("-timeout: %w", err)
			}
		default:
			rest = append(rest, args[i])
		}
	}
	return timeout, rest, nil
}

// runSeeds is what go test -exec runs: SOCKET SEEDS TIMEOUT BINARY [FLAG...]. Nothing else does.
func runSeeds(ctx context.Context, args []string) error {
	if len(args) < 4 {
		return fmt.Errorf("%s is for snowglobe test --seeds", runSeedsName)
	}
	all, err := seeds.ParseRange(args[1])
	if err != nil {
		return err
	}
	timeout, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	binary := seeds.Binary{Program: args[3], Args: args[4:], Seeds: all, Timeout: timeout, Socket: args[0]}
	err = seeds.Run(ctx, binary, os.Stdout)
	if errors.Is(err, seeds.ErrFailed) {
		return &childError{exitBroken} // it has been told
	}
	return failed(err)
}

// seedReport tells of the seeds of a search.
type seedReport struct {
	args     []string // of go test
	search   sim.Search
	json     bool
	out      io.Writer
	progress io.Writer
	begun    time.Time
	ran      []uint64
	failed   []uint64
	told     map[string]bool // what tests are not runnable in a bubble, and why
}

// add tells of one result.
func (r *seedReport) add(result seeds.Result) {
	r.ran = append(r.ran, result.Seed)
	for _, why := range result.NotRunnable {
		if line := result.Package + " " + why; !r.told[line] {
			r.told[line] = true
			fmt.Fprintln(r.progress, "snowglobe:", line)
		}
	}
	if result.Failed {
		r.failed = append(r.failed, result.Seed)
		result.Repeat = r.repeat(result)
		tests := strings.Join(result.Tests, ", ")
		fmt.Fprintf(r.progress, "snowglobe: seed %d failed in %s %s; to repeat it: %s\n", result.Seed, result.Package, tests, result.Repeat)
	}
	if r.json {
		_ = json.NewEncoder(r.out).Encode(result) // an output remembers
	}
}

// repeat is the command that runs a failure again: what has run in the process before a test
// counts too, so it is that test alone only if that has failed as well.
func (r *seedReport) repeat(result seeds.Result) string {
	if result.Alone {
		return sim.Repeat(result.Seed, r.search, sim.OnlyTest(result.Tests[0]), result.Package)
	}
	words := make([]string, len(r.args))
	for i, arg := range r.args {
		words[i] = sim.Quote(arg)
	}
	return sim.Repeat(result.Seed, r.search, "", strings.Join(words, " "))
}

func (r *seedReport) summarize() {
	ran, failed := distinct(r.ran), distinct(r.failed)
	took := time.Since(r.begun).Round(time.Second)
	out := r.out
	if r.json {
		out = r.progress
	}
	if len(failed) == 0 {
		fmt.Fprintf(out, "snowglobe: %d seeds passed (%s)\n", len(ran), took)
		return
	}
	fmt.Fprintf(out, "snowglobe: %d of %d seeds failed: %s (%s)\n", len(failed), len(ran), strings.Trim(fmt.Sprint(failed), "[]"), took)
}

// distinct are the seeds of results, of which several packages have the same.
func distinct(all []uint64) []uint64 {
	return slices.Compact(slices.Sorted(slices.Values(all)))
}
