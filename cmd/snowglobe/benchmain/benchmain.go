// Package benchmain is the command "snowglobe bench": its flags, the order in which it says what, and
// where reports go. It measures nothing, and knows no exit codes.
package benchmain

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/results"
	"snowglobe.test/bench/startup"
)

// Exits say what an error means for the exit code: that something could not be done, which is no wrong
// usage; or that what was measured is wrong, if it is the error that was found.
type Exits struct {
	Failed    func(error) error
	VerdictIf func(err, found error) error
}

// New returns the command.
func New(exits Exits) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast a control plane starts and how it fans out watches",
		Example: `  snowglobe bench all --quick
  snowglobe bench startup --against ./bin
  snowglobe bench watch --watchers 1000 --rate 200`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAll(exits), newPublish(exits), newSearch(exits), newStartup(exits), newWatch(exits))
	return cmd
}

func newStartup(exits Exits) *cobra.Command {
	opts := startup.Options{}
	var output results.Format
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
			if err := refuseZero(cmd, "runs"); err != nil {
				return err
			}
			opts.Progress = cmd.ErrOrStderr()
			report, err := startup.Measure(cmd.Context(), opts)
			if err != nil {
				return exits.Failed(err)
			}
			return exits.Failed(results.Write(cmd.OutOrStdout(), output, report))
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&opts.Runs, "runs", 0, "how many processes to measure, each with one first boot (default 5)")
	flags.IntVar(&opts.Following, "following", 0, "how many further boots in each process (default 3)")
	flags.StringVar(&opts.Store, "store", "", measure.StoreUsage)
	flags.StringVar(&opts.Against, "against", "", "compare with envtest on the kube-apiserver and etcd in this "+
		"`folder`")
	flags.StringVar(&opts.Profile, "profile", "", "write CPU profiles of one additional process to this `folder`")
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

// renamedFlags has the error about the old name of a flag tell the new one.
func renamedFlags(cmd *cobra.Command, renamed map[string]string) {
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && renamed[unknown.GetSpecifiedName()] != "" {
			return fmt.Errorf("%w: it is --%s now", err, renamed[unknown.GetSpecifiedName()])
		}
		return err
	})
}

func outputFlag(cmd *cobra.Command, output *results.Format) {
	*output = results.FormatText
	cmd.Flags().VarP(output, "output", "o", "text, json, or go for Go benchmark lines that benchstat reads")
}
