package benchmain

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"snowglobe.test/bench"
	"snowglobe.test/bench/load"
	"snowglobe.test/bench/results"
	"snowglobe.test/internal/outfile"
)

// watch is "snowglobe bench watch" as its flags say.
type watch struct {
	Exits
	opts                    bench.SweepOptions
	output                  results.Format
	kubeconfig, peer, sweep string
	html                    string
	encodings               []string
}

func newWatch(exits Exits) *cobra.Command {
	w := &watch{Exits: exits}
	opts := &w.opts
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

With --against or --peer another API server is measured in turn with ours, by the same
clients, and with --baselines what the parts of an API server do alone.

Slow and stalled watchers show what a server does with clients that cannot keep up:
how long it holds the others up, and which watches it ends. What they get counts apart.

With --sweep each value of an option is tried at many rates, to find the highest one
that all watchers follow within --slo.`,
		Example: `  snowglobe bench watch
  snowglobe bench watch --watchers 1000 --rate 200 --transport tls --encoding protobuf
  snowglobe bench watch --sweep watchers=1,10,100,1000 --slo 50ms --transport process
  snowglobe bench watch --watchers 1000 --transport tls --against stock --baselines
  snowglobe bench watch --kubeconfig ~/.kube/config`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return w.run(cmd) },
	}
	flags := cmd.Flags()
	opts.Shape.AddFlags(flags)
	opts.Pace.AddFlags(flags)
	flags.StringVar(&opts.Transport, "transport", "", "process, tls or both, or one of the baselines alone: store, "+
		"cacher or http2 (default both)")
	flags.StringSliceVar(&w.encodings, "encoding", nil, "json, protobuf or cbor, or several of them for a sweep "+
		"(default json)")
	flags.StringVar(&w.kubeconfig, "kubeconfig", "", "measure the cluster of this kubeconfig `file` instead")
	flags.StringVar(&opts.Against, "against", "", "measure kube-apiserver and etcd in turn with ours: a `folder` "+
		"with both, or the word stock to build them from the modules of the current folder")
	flags.StringVar(&w.peer, "peer", "", "measure the cluster of this kubeconfig `file` in turn with ours")
	flags.BoolVar(&opts.Baselines, "baselines", false, "measure the baselines too: the store's watch alone, "+
		"upstream's watch cache alone, and a bare HTTP/2 server that writes the same bytes")
	flags.StringVar(&opts.Profile, "profile", "", "write profiles of the process of the API server, or of a "+
		"baseline, during each load to this `folder`")
	flags.BoolVar(&opts.Stages, "stages", false, "run each load again, to measure how long its events take from one "+
		"point of their way to the next")
	flags.IntVar(&opts.Rounds, "rounds", 0, "how often to measure all of them, in turn (default 1, or 2 with "+
		"--against or --peer)")
	flags.StringVar(&w.sweep, "sweep", "", "find the highest rate for each of `option=values`, like "+
		"watchers=1,10,100; options are namespaces, objects, payload, selectors, servers, streams, watchers "+
		"and writers")
	flags.StringVar(&w.html, "html", "", "also write a page with the curves of a sweep to this `file`")
	flags.DurationVar(&opts.Objective, "slo", 0, "how long 99 of 100 deliveries of a sweep may take at most "+
		"(default 50ms)")
	renamedFlags(cmd, map[string]string{"floors": "baselines"})
	outputFlag(cmd, &w.output)
	return cmd
}

// run measures what the flags say.
func (w *watch) run(cmd *cobra.Command) (err error) {
	if err := refuseZero(cmd, "watchers", "rate", "duration", "writers", "payload", "namespaces", "selectors",
		"streams", "servers", "slo", "rounds"); err != nil {
		return err
	}
	if w.opts.Target, err = clusterOf("kubeconfig", w.kubeconfig); err != nil {
		return w.Failed(err)
	}
	if w.opts.Peer, err = clusterOf("peer", w.peer); err != nil {
		return w.Failed(err)
	}
	if cmd.Flags().Changed("warm-up") && w.opts.WarmUp <= 0 {
		w.opts.WarmUp = load.NoWarmUp // to the library, zero is the default
	}
	w.opts.Progress = cmd.ErrOrStderr()
	if w.sweep != "" {
		return w.runSweep(cmd)
	}
	for _, flag := range []string{"slo", "html"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is about a sweep: add --sweep, like --sweep watchers=1,10,100", flag)
		}
	}
	if len(w.encodings) > 1 {
		return errors.New("a load has one encoding: give one, or add --sweep")
	}
	if w.encodings != nil {
		w.opts.Encoding = w.encodings[0]
	}
	report, err := bench.Watch(cmd.Context(), w.opts.WatchOptions)
	if len(report.Loads) == 0 {
		return w.Failed(err)
	}
	return errors.Join(w.Failed(results.Write(cmd.OutOrStdout(), w.output, report)),
		w.VerdictIf(err, bench.ErrDelivery))
}

func (w *watch) runSweep(cmd *cobra.Command) (err error) {
	if w.opts.Sweep, err = bench.ParseSweep(w.sweep); err != nil {
		return err
	}
	if err := outfile.Try(w.html); err != nil {
		return w.Failed(fmt.Errorf("page: %w", err))
	}
	w.opts.Encodings = w.encodings
	report, err := bench.WatchSweep(cmd.Context(), w.opts)
	if len(report.Points) == 0 {
		return w.Failed(err)
	}
	if w.html != "" {
		err = errors.Join(err, results.WriteHTMLFile(w.html, report))
	}
	return errors.Join(w.Failed(err), w.Failed(results.Write(cmd.OutOrStdout(), w.output, report)))
}

// clusterOf is the cluster that the file of a flag tells of; nil without a file.
func clusterOf(flag, file string) (*rest.Config, error) {
	if file == "" {
		return nil, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return config, nil
}
