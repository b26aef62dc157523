package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"snowglobe.test/internal/releases"
)

func newRelease() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Build the stock kube-apiserver of other releases of Kubernetes",
		Long: `Build the stock kube-apiserver of other releases of Kubernetes from Go modules, and keep
it in the user's cache folder. "snowglobe assets --release" runs a suite of tests on it.`,
		Example: `  snowglobe release build 1.36 1.35`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newReleaseBuild(), newReleaseList(), newReleaseRemove())
	return cmd
}

func newReleaseBuild() *cobra.Command {
	return &cobra.Command{
		Use:   "build RELEASE...",
		Short: "Build kube-apiserver of these releases, unless they are there",
		Long: `Build kube-apiserver of these releases, each the newest patch of a minor release (1.36), or
a patch (1.36.3). The sources are modules, which the go command downloads by its own settings
(GOPROXY and others); the module of the current folder has no part in it.

A release takes some minutes, 100 MB in the user's cache folder, and what the go command keeps
of its modules and packages. Interrupt it with Ctrl-C: what is built so far is kept by the go
command, and nothing else is left.`,
		Example: `  snowglobe release build 1.36 1.35
  snowglobe release build v1.36.3`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, wanted := range args {
				if err := releases.Check(wanted); err != nil {
					return err
				}
			}
			folder, err := releases.InCache()
			if err != nil {
				return failed(err)
			}
			for _, wanted := range args {
				began := time.Now()
				built, err := folder.Build(cmd.Context(), wanted, cmd.ErrOrStderr())
				if err != nil {
					return failed(err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s  %s  %s  (%s)\n", built.Version, humanize.Bytes(uint64(built.Bytes)), built.Program, time.Since(began).Round(time.Second))
			}
			return nil
		},
	}
}

func newReleaseList() *cobra.Command {
	output := outputText
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the releases that are built",
		Example: `  snowglobe release list
  snowglobe release list --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			folder, err := releases.InCache()
			if err != nil {
				return failed(err)
			}
			built, err := folder.List()
			if err != nil {
				return failed(err)
			}
			if output == outputJSON {
				return failed(json.NewEncoder(cmd.OutOrStdout()).Encode(append([]releases.Release{}, built...)))
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, r := range built {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Version, humanize.Bytes(uint64(r.Bytes)), r.Built.Format(time.DateTime), r.Program)
			}
			if len(built) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "snowglobe: no release is built; build one with: snowglobe release build 1.36")
			}
			return failed(table.Flush())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "text or json")
	return cmd
}

func newReleaseRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "remove RELEASE...",
		Short:   "Remove releases that are built",
		Example: `  snowglobe release remove 1.35.4`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder, err := releases.InCache()
			if err != nil {
				return failed(err)
			}
			var found []*releases.Release
			for _, wanted := range args {
				release, err := builtRelease(folder, wanted)
				if err != nil {
					return err
				}
				found = append(found, release)
			}
			for _, release := range found {
				if err := folder.Remove(release); err != nil {
					return failed(err)
				}
				fmt.Fprintln(cmd.OutOrStdout(), "removed", release.Version)
			}
			return nil
		},
	}
}

// builtRelease finds a release, and says how to build one that is not there.
func builtRelease(folder releases.Folder, wanted string) (*releases.Release, error) {
	if err := releases.Check(wanted); err != nil {
		return nil, err
	}
	found, err := folder.Find(wanted)
	if err == nil && found == nil {
		err = errors.New("release " + wanted + " is not built; build it with: snowglobe release build " + wanted)
	}
	return found, failed(err)
}
