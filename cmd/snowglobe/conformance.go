package main

import (
	"github.com/spf13/cobra"

	"snowglobe.test/conformance"
)

func newConformance() *cobra.Command {
	opts := conformance.Options{}
	list := false
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Check what an API server promises, on Snowglobe's stores or on any cluster",
		Long: `Run the conformance cases against a Snowglobe control plane, or against the cluster
of a kubeconfig. The exit code is 1 if a promise is broken.`,
		Example: `  snowglobe conformance --list
  snowglobe conformance --virtual
  snowglobe conformance --store embedded --junit report.xml
  snowglobe conformance --kubeconfig ~/.kube/config --focus watch`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if list {
				return failed(conformance.List(cmd.OutOrStdout(), opts.Output))
			}
			opts.Out = cmd.OutOrStdout()
			_, err := conformance.Execute(cmd.Context(), opts)
			return failed(err)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&list, "list", false, "print the cases instead of running them")
	flags.StringVar(&opts.Store, "store", "", "the `store` to run on: memory, embedded, or the URLs of an etcd (default memory)")
	flags.StringVar(&opts.Kubeconfig, "kubeconfig", "", "run against the cluster of this kubeconfig `file` instead")
	flags.BoolVar(&opts.VirtualTime, "virtual", false, "run in virtual time (with the memory store)")
	flags.StringVar(&opts.Focus, "focus", "", "run only the cases whose ID, area or promise matches this `regexp`")
	flags.StringVar(&opts.JUnit, "junit", "", "write a JUnit report to this `file`")
	flags.StringVarP(&opts.Output, "output", "o", conformance.OutputText, "text or json")
	cmd.MarkFlagsMutuallyExclusive("store", "kubeconfig")
	cmd.MarkFlagsMutuallyExclusive("virtual", "kubeconfig")
	return cmd
}
