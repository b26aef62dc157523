//go:build !snowglobe_light

package main

import (
	"fmt"
	"regexp"
	"runtime"

	"github.com/spf13/cobra"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
)

func newConformance() *cobra.Command {
	opts := conformance.Options{}
	list := false
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Check what an API server promises, on Snowglobe's stores, stock programs or any cluster",
		Long: `Run the conformance cases against a Snowglobe control plane, against a stock
kube-apiserver, or against the cluster of a kubeconfig. On the latter it says first what it
makes there, changes nothing else, and removes it at the end, also after Ctrl-C. The exit
code is 1 if a promise is broken, and 2 if not all could be judged: the target can't be
reached, or is gone halfway, or no case applies to it, or something is left there.

A case that the target can't meet the needs of, such as a newer release or a feature
gate, is not applicable, and the report says why. What a case is selected by with
--label-filter, as ginkgo does it, is its system (S6), its area (watch), its level (core
or versioned), its reach (portable, or linked if it launches control planes of its own and
so runs only in this process), "failure" if it is about one, and its KEP (KEP-2340).`,
		Example: `  snowglobe conformance --list
  snowglobe conformance --virtual
  snowglobe conformance --store embedded --junit report.xml
  snowglobe conformance --stock ./bin -o json
  snowglobe conformance --kubeconfig ~/.kube/config --focus watch --html report.html
  snowglobe conformance --label-filter 'S6 && core && !failure'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return listCases(cmd, opts)
			}
			if cmd.Flags().Changed("start-timeout") && opts.StartTimeout <= 0 {
				return fmt.Errorf("--start-timeout %s is no time to wait; give one like 2m", opts.StartTimeout)
			}
			if opts.Parallel < 1 {
				return fmt.Errorf("--parallel is %d; run at least one case at a time", opts.Parallel)
			}
			opts.Out, opts.Notices = cmd.OutOrStdout(), cmd.ErrOrStderr()
			_, err := conformance.Execute(cmd.Context(), opts)
			return verdictIf(err, engine.ErrFailed)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&list, "list", false, "print the cases instead of running them")
	flags.StringVar(&opts.Store, "store", "", "the `store` to run on: memory, embedded (which takes 128 MB in the temporary folder), cluster (three API servers on an etcd of three members, which takes three times that), or the URLs of an etcd (default memory)")
	flags.StringVar(&opts.Stock, "stock", "", "run the stock kube-apiserver and etcd in this `folder`, and test these instead")
	flags.DurationVar(&opts.StartTimeout, "start-timeout", 0, "give up if the control plane, or its store, is not ready after this time (default 1m, and 30s for an embedded store)")
	flags.StringVar(&opts.Kubeconfig, "kubeconfig", "", "run against the cluster of this kubeconfig `file` instead")
	flags.StringVar(&opts.Release, "release", "", "the `release` that the cluster of the kubeconfig is held to, like v1.37.1 (default what it reports)")
	flags.BoolVar(&opts.VirtualTime, "virtual", false, "run in virtual time (with the memory store)")
	flags.Func("focus", "run only the cases whose ID, area or promise matches this `regexp`, or one of several",
		anyOf(&opts.Selection.Focus))
	flags.Func("skip", "leave out the cases whose ID, area or promise matches this `regexp`, or one of several",
		anyOf(&opts.Selection.Skip))
	flags.StringVar(&opts.Selection.Labels, "label-filter", "", "run only the cases whose labels match this `query`")
	flags.IntVar(&opts.Parallel, "parallel", 2*runtime.GOMAXPROCS(0), "how many cases to run at a time, each of which waits half of its time; in virtual time, one")
	flags.Lookup("parallel").DefValue = "two for each processor" // the same on every machine, for the page
	flags.Int64Var(&opts.Seed, "seed", 0, "run the cases in a random order that this seed decides; 0 is the order of the list")
	flags.StringVar(&opts.JUnit, "junit", "", "write a JUnit report to this `file`")
	flags.StringVar(&opts.HTML, "html", "", "write an HTML page to this `file`")
	flags.StringVarP(&opts.Output, "output", "o", reports.OutputText, "text or json")
	cmd.MarkFlagsMutuallyExclusive("store", "stock", "kubeconfig")
	cmd.MarkFlagsMutuallyExclusive("virtual", "stock", "kubeconfig")
	cmd.MarkFlagsMutuallyExclusive("start-timeout", "kubeconfig")
	cmd.AddCommand(newConformanceDiff(), newConformancePage(), newConformanceStore())
	return cmd
}

// anyOf sets a regular expression by a flag. Given several times, it matches what one of them does.
func anyOf(expression *string) func(string) error {
	return func(text string) error {
		if _, err := regexp.Compile(text); err != nil {
			return err
		}
		if *expression != "" {
			text = *expression + "|" + text
		}
		*expression = text
		return nil
	}
}

func listCases(cmd *cobra.Command, opts conformance.Options) error {
	cases, err := engine.Select(conformance.Cases(), opts.Selection)
	if err != nil {
		return failed(err)
	}
	return failed(reports.List(cmd.OutOrStdout(), cases, opts.Output))
}
