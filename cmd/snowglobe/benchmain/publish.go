package benchmain

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"snowglobe.test/bench"
	"snowglobe.test/bench/measure"
)

func newPublish(exits Exits) *cobra.Command {
	opts := bench.PublishOptions{}
	cmd := &cobra.Command{
		Use:   "publish FOLDER",
		Short: "Measure watch fan-out from one watcher to many, and write a page about it",
		Long: `Measure how many watch events a second reach 1 to 10,000 watchers, in each encoding, in
process and over TLS, beside the stock kube-apiserver and beside what the parts do alone;
what a watch takes; how many watchers one process holds; and where its time goes. FOLDER
gets PERFORMANCE.md, and in FOLDER/performance the plots and the raw data.

All of it takes more than an hour. Each part is written when it has been measured, so that
an interrupted command loses no more than one, and --only goes on with the others. With
--watchers the curves keep their points at other numbers, if this machine measured them.`,
		Example: `  snowglobe bench publish docs
  snowglobe bench publish docs --only protobuf,cbor
  snowglobe bench publish docs --keep`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Folder, opts.Progress = args[0], cmd.ErrOrStderr()
			if err := refuseZero(cmd, "duration", "watchers", "many", "most"); err != nil {
				return err
			}
			if err := bench.Publish(cmd.Context(), opts); err != nil {
				return exits.Failed(err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(opts.Folder, "PERFORMANCE.md"))
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&opts.Only, "only", nil, "the `parts` to measure: json, protobuf, cbor, many, memory, most "+
		"or shares; the page has the others as they were measured last (default all)")
	flags.BoolVar(&opts.Keep, "keep", false, "measure nothing, and write the page from the raw data that is there")
	flags.StringVar(&opts.Against, "against", measure.AgainstStock, "measure kube-apiserver and etcd in turn with "+
		"ours: a `folder` with both, the word stock to build them from the modules of the current folder, or nothing")
	flags.DurationVar(&opts.Duration, "duration", 0, "how long to write at each rate that is tried (default 2s)")
	flags.IntSliceVar(&opts.Watchers, "watchers", nil, "how many watch, in the curves (default 1,10,100,1000)")
	flags.IntVar(&opts.Many, "many", 0, "how many watch in the part for many, which ends the curves with an "+
		"objective of a second, and in that for memory (default 10000)")
	flags.IntSliceVar(&opts.Most, "most", nil, "how many watch in the part for the most (default "+
		"12000,25000,50000,100000)")
	return cmd
}
