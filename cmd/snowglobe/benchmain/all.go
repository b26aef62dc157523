package benchmain

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"snowglobe.test/bench"
	"snowglobe.test/bench/results"
	"snowglobe.test/internal/outfile"
)

// all is "snowglobe bench all" as its flags say.
type all struct {
	Exits
	opts          bench.AllOptions
	output        results.Format
	compare, html string
}

func newAll(exits Exits) *cobra.Command {
	b := &all{Exits: exits}
	cmd := &cobra.Command{
		Use:   "all",
		Short: "Measure startup, requests, resets and watches on this machine, and compare with before",
		Long: `Measure boots, stops, resets, writes, lists, lists by a watch and the delivery of watch
events, each once a round. The report in JSON has all samples.

With --compare the measures are put beside those of an older report of this machine. A
measure that takes longer by 3% or more, with 95% confidence for all of them together,
is a failure. The last column says how many rounds a change of 5% needs to be seen.
A calibration, a fixed piece of work that has nothing to do with a control plane, is
measured too: if it shows that the machine itself is faster or slower than before, all
else is divided by it.`,
		Example: `  snowglobe bench all --quick
  snowglobe bench all --output json > before.json
  snowglobe bench all --compare before.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd) },
	}
	flags := cmd.Flags()
	flags.IntVar(&b.opts.Rounds, "rounds", 0, "how often to measure everything (default 30, or 12 with --quick)")
	flags.BoolVar(&b.opts.Quick, "quick", false, "be done within three minutes")
	flags.StringSliceVar(&b.opts.Only, "only", nil, "the `parts` to measure: startup, requests or watch (default all)")
	flags.StringVar(&b.compare, "compare", "", "compare with the report in this `file`, which --output json wrote")
	flags.StringVar(&b.html, "html", "", "also write a page with a plot of each measure to this `file`")
	flags.Float64Var(&b.opts.InjectedSlowdown, "injected-slowdown", 0, "have boots, stops, resets, writes and lists "+
		"last longer by this `share` of their time, like 0.1, to see that a comparison notices")
	renamedFlags(cmd, map[string]string{"plant": "injected-slowdown"})
	outputFlag(cmd, &b.output)
	return cmd
}

func (b *all) run(cmd *cobra.Command) (err error) {
	if err := refuseZero(cmd, "rounds"); err != nil {
		return err
	}
	var old *results.AllReport
	if b.compare != "" {
		if old, err = readAllReport(b.compare); err != nil {
			return b.Failed(err)
		}
	}
	if err := outfile.Try(b.html); err != nil {
		return b.Failed(fmt.Errorf("page: %w", err))
	}
	b.opts.Progress = cmd.ErrOrStderr()
	report, err := bench.All(cmd.Context(), b.opts)
	if len(report.Measures) == 0 {
		return b.Failed(err)
	}
	if old != nil && err == nil {
		var changes results.Changes
		if changes, err = results.Compare(*old, report); err == nil {
			report.Changes, err = &changes, changes.Err()
		}
	}
	if b.html != "" {
		err = errors.Join(err, results.WriteHTMLFile(b.html, report))
	}
	return errors.Join(b.Failed(results.Write(cmd.OutOrStdout(), b.output, report)),
		b.VerdictIf(err, results.ErrSlower))
}

func readAllReport(file string) (*results.AllReport, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	report := &results.AllReport{}
	if err := json.Unmarshal(text, report); err != nil || len(report.Measures) == 0 {
		return nil, errors.Join(fmt.Errorf("%s is no report of snowglobe bench all --output json", file), err)
	}
	return report, nil
}
