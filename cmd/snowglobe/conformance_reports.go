//go:build !snowglobe_light

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
)

// errTargetsDiffer is the error of a comparison that found a difference.
var errTargetsDiffer = errors.New("the targets differ")

func newConformanceDiff() *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Show what two targets do differently",
		Long: `Compare two reports written by conformance --output json: the cases that ended in
another state, with what each of the two found. The exit code is 0 if there are none, and
1 if there are.`,
		Example: `  snowglobe conformance -o json > a.json
  snowglobe conformance --kubeconfig ~/.kube/config -o json > b.json
  snowglobe conformance diff a.json b.json`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != reports.OutputText && output != reports.OutputJSON {
				return fmt.Errorf("output %q is not known; use %q or %q", output, reports.OutputText, reports.OutputJSON)
			}
			read, err := readReports(args)
			if err != nil {
				return failed(err)
			}
			comparison := reports.Diff(args[0], read[0], args[1], read[1])
			write := comparison.WriteText
			if output == reports.OutputJSON {
				write = comparison.WriteJSON
			}
			err = failed(write(cmd.OutOrStdout()))
			if len(comparison.Differences) > 0 {
				err = errors.Join(verdict(errTargetsDiffer), err)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", reports.OutputText, "text or json")
	return cmd
}

func newConformancePage() *cobra.Command {
	html := ""
	cmd := &cobra.Command{
		Use:   "page REPORT...",
		Short: "Make a page that shows systems by targets",
		Long: `Make a page of reports written by conformance --output json, one for each target:
systems by targets, each case with its promise and its source, and for each broken one
the requests and the answers around it. The page is one file, and needs no network.`,
		Example: `  snowglobe conformance -o json > memory.json
  snowglobe conformance --kubeconfig ~/.kube/config -o json > cluster.json
  snowglobe conformance page memory.json cluster.json --html conformance.html`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if html == "" {
				return errors.New("nothing to write; say where to, with --html")
			}
			read, err := readReports(args)
			if err != nil {
				return failed(err)
			}
			return failed(reports.WriteHTMLFile(html, read...))
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "write the page to this `file`")
	return cmd
}

func readReports(paths []string) ([]engine.Report, error) {
	read := make([]engine.Report, len(paths))
	for i, path := range paths {
		var err error
		if read[i], err = reports.Read(path); err != nil {
			return nil, err
		}
	}
	return read, nil
}
