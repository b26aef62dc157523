package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"snowglobe.test/bench"
)

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast a control plane starts and how it fans out watches",
		Example: `  snowglobe bench startup --against ./bin
  snowglobe bench watch --watchers 1000 --rate 200`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchStartup(), newBenchWatch())
	return cmd
}

func newBenchStartup() *cobra.Command {
	opts := bench.StartupOptions{}
	output := ""
	cmd := &cobra.Command{
		Use:   "startup",
		Short: "Measure first boots, later boots and stops",
		Long: `Measure how long control planes take to become ready, the first one in a process
and those after it, and how long they take to stop. With --against it alternates
with controller-runtime's envtest on the binaries in that folder and prints the
ratios; docs/HACKING.md says how to build the binaries.`,
		Example: `  snowglobe bench startup
  snowglobe bench startup --against ./bin --runs 10`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, err := bench.ParseFormat(output)
			if err != nil {
				return err
			}
			if err := refuseZero(cmd, "runs"); err != nil {
				return err
			}
			opts.Progress = cmd.ErrOrStderr()
			report, err := bench.Startup(cmd.Context(), opts)
			if err != nil {
				return failed(err)
			}
			return failed(bench.Write(cmd.OutOrStdout(), format, report))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&opts.Runs, "runs", 0, "how many processes to measure, each with one first boot (default 5)")
	flags.IntVar(&opts.Following, "following", 0, "how many further boots in each process (default 3)")
	flags.StringVar(&opts.Store, "store", "", "memory, or embedded, which takes 128 MB in the temporary folder (default memory)")
	flags.StringVar(&opts.Against, "against", "", "compare with envtest on the kube-apiserver and etcd in this `folder`")
	flags.StringVar(&opts.Profile, "profile", "", "write CPU profiles of one additional process to this `folder`")
	outputFlag(cmd, &output)
	return cmd
}

func newBenchWatch() *cobra.Command {
	opts := bench.SweepOptions{}
	output, kubeconfig, sweep := "", "", ""
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Measure how long events take to reach many watchers",
		Long: `Measure the time from just before a client writes an object until each of many
watchers has read the event. Every event is accounted for: one that is lost, repeated
or out of order is a failure. Watchers read bytes, so that the server is measured and
not its clients; with --decode they also decode them, as client-go does. Over TLS they
run in a process of their own, for the same reason. The latency of an event that is
written late, since its writer waits for the answer to the one before, begins when it
was due.

With --sweep each value of an option is tried at many rates, to find the highest one
that all watchers follow within --slo.`,
		Example: `  snowglobe bench watch
  snowglobe bench watch --watchers 1000 --rate 200 --transport tls --encoding protobuf
  snowglobe bench watch --sweep watchers=1,10,100,1000 --slo 50ms --transport process
  snowglobe bench watch --kubeconfig ~/.kube/config`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			format, err := bench.ParseFormat(output)
			if err != nil {
				return err
			}
			if kubeconfig != "" {
				if opts.Target, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
					return failed(fmt.Errorf("kubeconfig: %w", err))
				}
			}
			if err := refuseZero(cmd, "watchers", "rate", "duration", "writers", "payload", "namespaces", "selectors", "streams", "slo"); err != nil {
				return err
			}
			opts.Progress = cmd.ErrOrStderr()
			if sweep != "" {
				if opts.Sweep, err = bench.ParseSweep(sweep); err != nil {
					return err
				}
				report, err := bench.WatchSweep(cmd.Context(), opts)
				if len(report.Points) == 0 {
					return failed(err)
				}
				return errors.Join(failed(err), failed(bench.Write(cmd.OutOrStdout(), format, report)))
			}
			if cmd.Flags().Changed("slo") {
				return errors.New("--slo is what a sweep searches for: add --sweep, like --sweep watchers=1,10,100")
			}
			report, err := bench.Watch(cmd.Context(), opts.WatchOptions)
			if err != nil && !errors.Is(err, bench.ErrDelivery) {
				return failed(err)
			}
			return errors.Join(failed(bench.Write(cmd.OutOrStdout(), format, report)), verdictIf(err, bench.ErrDelivery))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&opts.Watchers, "watchers", 0, "how many clients watch (default 100)")
	flags.Float64Var(&opts.Rate, "rate", 0, "events per second (default 100)")
	flags.DurationVar(&opts.Duration, "duration", 0, "how long to write (default 10s)")
	flags.IntVar(&opts.StreamsPerConnection, "streams", 0, "how many watches share a connection (default 1)")
	flags.IntVar(&opts.Writers, "writers", 0, "how many clients write, each to its own object (default 4, or as many as namespaces and selectors need)")
	flags.StringVar(&opts.Resource, "resource", "", "what is written and watched: configmaps, pods, leases, or widgets, which are custom resources (default configmaps)")
	flags.IntVar(&opts.Namespaces, "namespaces", 0, "over how many namespaces objects and watchers are spread (default 1)")
	flags.IntVar(&opts.Selectors, "selectors", 0, "over how many labels those of a namespace are spread; each watcher selects one (default 1: no selector)")
	flags.IntVar(&opts.PayloadBytes, "payload", 0, "`bytes` of data in each object (default 256)")
	flags.StringVar(&opts.Transport, "transport", "", "process, tls or both (default both)")
	flags.StringVar(&opts.Encoding, "encoding", "", "json, protobuf or cbor (default json)")
	flags.BoolVar(&opts.Decode, "decode", false, "have each watcher decode its events, as client-go does")
	flags.StringVar(&opts.Store, "store", "", "memory, or embedded, which takes 128 MB in the temporary folder (default memory)")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "measure the cluster of this kubeconfig `file` instead")
	flags.StringVar(&sweep, "sweep", "", "find the highest rate for each of `option=values`, like watchers=1,10,100; options are namespaces, payload, selectors, streams, watchers and writers")
	flags.DurationVar(&opts.Objective, "slo", 0, "how long 99 of 100 deliveries of a sweep may take at most (default 50ms)")
	outputFlag(cmd, &output)
	return cmd
}

// refuseZero returns an error for a flag that is given as 0, which would be the default.
func refuseZero(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		flag := cmd.Flags().Lookup(name)
		if value := flag.Value.String(); flag.Changed && (value == "0" || value == "0s") {
			return fmt.Errorf("--%s %s measures nothing; give more, or leave the flag out for its default", name, value)
		}
	}
	return nil
}

func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", string(bench.FormatText), "text, json, or go for Go benchmark lines that benchstat reads")
}
