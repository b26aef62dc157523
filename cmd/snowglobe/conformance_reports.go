package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"snowglobe.test/conformance"
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
			if output != conformance.OutputText && output != conformance.OutputJSON {
				return fmt.Errorf("output %q is not known; use %q or %q", output, conformance.OutputText, conformance.OutputJSON)
			}
			reports, err := readReports(args)
			if err != nil {
				return failed(err)
			}
			comparison := conformance.Diff(args[0], reports[0], args[1], reports[1])
			write := comparison.WriteText
			if output == conformance.OutputJSON {
				write = comparison.WriteJSON
			}
			err = failed(write(cmd.OutOrStdout()))
			if len(comparison.Differences) > 0 {
				err = errors.Join(verdict(errTargetsDiffer), err)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", conformance.OutputText, "text or json")
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
			reports, err := readReports(args)
			if err != nil {
				return failed(err)
			}
			return failed(conformance.WriteHTMLFile(html, reports...))
		},
	}
	cmd.Flags().StringVar(&html, "html", "", "write the page to this `file`")
	return cmd
}

func readReports(paths []string) ([]conformance.Report, error) {
	reports := make([]conformance.Report, len(paths))
	for i, path := range paths {
		var err error
		if reports[i], err = conformance.ReadReport(path); err != nil {
			return nil, err
		}
	}
	return reports, nil
}
