package main

import (
	"github.com/spf13/cobra"

	"snowglobe.test/bench"
)

func newBenchClients() *cobra.Command {
	return &cobra.Command{
		Use:   "clients",
		Short: "Watch for a measurement in another process, which starts this",
		Long: `Take a share of the watchers of a load. This is what "snowglobe bench watch
--client-process" starts, perhaps on another machine: it says on standard input what to
watch, with the credentials for it, and reads from standard output what came of it.`,
		Example: `  snowglobe bench watch --kubeconfig ~/.kube/config --client-process 'ssh node snowglobe'`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return failed(bench.Clients(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()))
		},
	}
}
