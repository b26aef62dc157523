package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"snowglobe.test/envtest/linked"
)

func newVersion() *cobra.Command {
	output := outputText
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the Kubernetes release linked into it",
		Example: `  snowglobe version
  snowglobe version --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if output == outputJSON {
				return failed(json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{
					"snowglobe": ownVersion(), "kubernetes": linked.Release(), "go": runtime.Version(),
				}))
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), versions())
			return failed(err)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "text or json")
	return cmd
}

// versions is what "version" and "--version" print.
func versions() string {
	return fmt.Sprintf("snowglobe  %s\nkubernetes %s\ngo         %s\n",
		ownVersion(), linked.Release(), runtime.Version())
}

// ownVersion is the version of this module; Go stamps it with the commit if it is
// built from a work tree.
func ownVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if version := info.Main.Version; version != "" && version != "(devel)" {
		return version
	}
	return "devel"
}
