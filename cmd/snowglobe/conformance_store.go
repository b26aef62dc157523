//go:build !snowglobe_light

package main

import (
	"github.com/spf13/cobra"

	"snowglobe.test/conformance"
	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
	"snowglobe.test/conformance/store"
)

func newConformanceStore() *cobra.Command {
	opts := conformance.StoreOptions{}
	list := false
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Check what Kubernetes needs of a store, on anything that speaks etcd's API",
		Long: `Judge a store by what Kubernetes needs of it: an etcd, or anything else that speaks
etcd's API. The cases write only keys below a prefix of their own, and remove them at the
end, also after Ctrl-C. They compact the store's history, unless told to keep it.

Those of level kubernetes are promises that an API server relies on, asked for as it does;
--level etcd adds what etcd promises besides. The exit code is 1 if a promise is broken, and
2 if not all could be judged: the store can't be reached, or is gone halfway.`,
		Example: `  snowglobe conformance store --list
  snowglobe conformance store --endpoints http://127.0.0.1:2379
  snowglobe conformance store --endpoints unix:///run/kine.sock --focus progress -o json
  snowglobe conformance store --endpoints https://etcd:2379 --cacert ca.crt --cert client.crt --key client.key --keep-history`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				cases, err := opts.Cases()
				if err != nil {
					return failed(err)
				}
				return failed(reports.List(cmd.OutOrStdout(), cases, opts.Output))
			}
			onlyGRPCErrors() // why there is no connection is told at the end
			opts.Out, opts.Notices = cmd.OutOrStdout(), cmd.ErrOrStderr()
			_, err := conformance.ExecuteStore(cmd.Context(), opts)
			return verdictIf(err, engine.ErrFailed)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&list, "list", false, "print the cases instead of running them")
	flags.StringSliceVar(&opts.Endpoints, "endpoints", []string{"http://127.0.0.1:2379"}, "the store's `URLs`, separated by commas")
	flags.StringVar(&opts.CAFile, "cacert", "", "the `file` of the authority of the store's certificate")
	flags.StringVar(&opts.CertFile, "cert", "", "the `file` of the client's certificate")
	flags.StringVar(&opts.KeyFile, "key", "", "the `file` of that certificate's key")
	flags.StringVar(&opts.Prefix, "prefix", store.DefaultPrefix, "write only keys below this `prefix`")
	flags.BoolVar(&opts.KeepHistory, "keep-history", false, "leave out the cases that compact, which other clients of the store would notice")
	flags.StringVar((*string)(&opts.Level), "level", string(store.Kubernetes), "kubernetes, or etcd for that and more")
	flags.DurationVar(&opts.Patience, "patience", 0, "how long to wait for what should come at once, like an event (default 10s)")
	flags.Func("focus", "run only the cases whose ID or promise matches this `regexp`, or one of several",
		anyOf(&opts.Focus))
	flags.StringVar(&opts.JUnit, "junit", "", "write a JUnit report to this `file`")
	flags.StringVarP(&opts.Output, "output", "o", reports.OutputText, "text or json")
	return cmd
}
