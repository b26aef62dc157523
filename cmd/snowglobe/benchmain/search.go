package benchmain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"snowglobe.test/bench/results"
	"snowglobe.test/bench/search"
	"snowglobe.test/envtest/sim"
)

func newSearch(exits Exits) *cobra.Command {
	opts := search.Options{}
	var output results.Format
	var page string
	var list bool
	var tests testsOfOthers
	cmd := &cobra.Command{
		Use:   "search",
		Short: "Measure how soon each search strategy finds known bugs",
		Long: `Run known bugs of Docker, Kubernetes, etcd, CockroachDB, gRPC and others under one seed
after another until they fail, with each strategy of "snowglobe test --strategy". The bugs are the
68 blocking kernels of GoBench (git clone https://github.com/timmyyuan/gobench), as they are, or else
the copies in Go's own source, which call runtime.Gosched to fail more often.

With --fixed, kernels that have been mended run as well: what fails then is a false alarm.

With --tests, run the tests of packages instead, as they are: each in a bubble, under --seeds seeds, with the
strategy of "snowglobe test --bubble". The packages are those that "go list" finds from here.`,
		Example: `  snowglobe bench search
  snowglobe bench search --kernels ./gobench --strategies pos,pct --rows 20
  snowglobe bench search --kernels ./gobench --rows 20 --repeat 20 --fixed 1000 --page docs
  snowglobe bench search --tests k8s.io/client-go/util/workqueue,k8s.io/client-go/tools/cache`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(checkSearch(opts), tests.check(cmd.Flags())); err != nil {
				return err
			}
			if list {
				return exits.Failed(listKernels(cmd, opts.Kernels, output))
			}
			opts.Progress = cmd.ErrOrStderr()
			report, err := measureSearch(cmd.Context(), opts, tests, page)
			if err != nil {
				return exits.Failed(err)
			}
			return exits.Failed(results.Write(cmd.OutOrStdout(), output, report))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Kernels, "kernels", "", "a clone of GoBench, a `folder`")
	flags.StringSliceVar(&opts.Strategies, "strategies", sim.Strategies,
		"the `strategies`; --repeat and --fixed are for the first")
	flags.IntVar(&opts.Runs, "runs", 100, "how many seeds to run a kernel under at most")
	flags.IntVar(&opts.Firsts, "rows", 1, "how many times to begin, each time with other seeds")
	flags.IntVar(&opts.Repeats, "repeat", 0, "how often to repeat the first failure of each kernel")
	flags.IntVar(&opts.Fixed, "fixed", 0, "how many runs each mended kernel gets")
	flags.StringSliceVar(&tests.packages, "tests", nil, "run the tests of these `packages`, and no kernels")
	flags.IntVar(&tests.seeds, "seeds", 20, "with --tests, how many seeds each test runs under")
	flags.StringVar(&page, "page", "",
		"write search.md, a page about it, and search.json, the raw data, into this `folder`")
	flags.BoolVar(&list, "list", false, "name the kernels, and run none")
	outputFlag(cmd, &output)
	return cmd
}

// testsOfOthers says which tests to run in the place of kernels.
type testsOfOthers struct {
	packages []string
	seeds    int
}

// check reports what is wrong with the flags.
func (t testsOfOthers) check(flags *pflag.FlagSet) error {
	if len(t.packages) == 0 {
		if flags.Changed("seeds") {
			return errors.New("--seeds is for --tests; a kernel runs under --runs seeds")
		}
		return nil
	}
	for _, name := range []string{"kernels", "strategies", "runs", "rows", "repeat", "fixed", "list"} {
		if flags.Changed(name) {
			return fmt.Errorf("--%s is for kernels, and --tests runs none", name)
		}
	}
	if t.seeds < 1 {
		return errors.New("--seeds is at least one")
	}
	return nil
}

// measureSearch measures kernels, or tests, and writes a page into a folder if there is one.
func measureSearch(
	ctx context.Context, opts search.Options, tests testsOfOthers, page string,
) (report search.Report, err error) {
	if page != "" {
		if err := search.CheckPage(page); err != nil {
			return search.Report{}, err
		}
	}
	if len(tests.packages) > 0 {
		report, err = search.MeasureTests(ctx, tests.packages, tests.seeds, opts.Progress)
	} else {
		report, err = search.Measure(ctx, opts)
	}
	if err == nil && page != "" {
		err = report.WritePage(page)
	}
	return report, err
}

func listKernels(cmd *cobra.Command, folder string, output results.Format) error {
	names, err := search.Kernels(cmd.Context(), folder)
	switch {
	case err != nil:
		return err
	case output == results.FormatJSON:
		return json.NewEncoder(cmd.OutOrStdout()).Encode(names)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.Join(names, "\n"))
	return err
}

func checkSearch(opts search.Options) error {
	for _, name := range opts.Strategies {
		if !slices.Contains(sim.Strategies, name) {
			return fmt.Errorf("there is no strategy %q; there are %s", name, strings.Join(sim.Strategies, ", "))
		}
	}
	switch {
	case len(opts.Strategies) == 0 || opts.Runs < 1 || opts.Firsts < 1:
		return errors.New("--strategies, --runs and --rows are at least one")
	case opts.Fixed < 0 || opts.Repeats < 0:
		return errors.New("--fixed and --repeat are from 0 on")
	case opts.Fixed > 0 && opts.Kernels == "":
		return errors.New("--fixed is for the kernels of GoBench: say where they are, by --kernels")
	}
	return nil
}
