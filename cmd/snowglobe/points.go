package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"snowglobe.test/envtest/fault"
)

func newPoints() *cobra.Command {
	output := outputText
	cmd := &cobra.Command{
		Use:   "points [PATTERN]",
		Short: "List the points where operations can be held, delayed, failed, lost or reordered",
		Long: `List the points where rules can hold, delay, fail, lose or reorder operations of a
control plane. With a PATTERN, which names points the way a rule does, show what rules
can say at those points. The exit code is 1 if no point matches.
docs/reference/points.md describes rules and plans.`,
		Example: `  snowglobe points
  snowglobe points store/put
  snowglobe points 'http/*'
  snowglobe points hook/crd-informer-synced
  snowglobe points --output json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completePoints,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			pattern := "*"
			if len(args) > 0 {
				pattern = args[0]
			}
			kinds, err := fault.FindPoints(pattern)
			switch {
			case err != nil:
				return failed(fmt.Errorf("%w (snowglobe points lists all)", err))
			case output == outputJSON:
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetEscapeHTML(false)
				return failed(encoder.Encode(kinds))
			case len(args) > 0:
				return failed(describePoints(cmd.OutOrStdout(), kinds))
			}
			return failed(listPoints(cmd.OutOrStdout(), kinds))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "text or json")
	return cmd
}

func completePoints(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, k := range fault.Points() {
		names = append(names, k.Name+"\t"+k.Meaning)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func listPoints(out io.Writer, kinds []fault.PointKind) error {
	color := wantsColor(out)
	width := 0
	for _, k := range kinds {
		width = max(width, len(k.Name))
	}
	for _, k := range kinds {
		name := paint(color, bold, k.Name) + strings.Repeat(" ", width-len(k.Name))
		if _, err := fmt.Fprintf(out, "%s  %s\n", name, k.Meaning); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "\n%s\n", paint(color, faint, "snowglobe points PATTERN shows what rules can say at a point"))
	return err
}

// describePoints writes everything rules can say at the points.
func describePoints(out io.Writer, kinds []fault.PointKind) error {
	color := wantsColor(out)
	var text strings.Builder
	for i, k := range kinds {
		if i > 0 {
			text.WriteByte('\n')
		}
		fmt.Fprintf(&text, "%s  %s\n", paint(color, bold, k.Name), k.Meaning)
		for _, part := range []struct{ title, words string }{
			{"names", joined(k.Names)},
			{"phases", joined(k.Phases)},
			{"verbs", joined(k.Verbs)},
			{"keys", joined(k.Fields)},
			{"actions", joined(k.Actions)},
			{"errors", joined(k.Failures)},
			{"example", k.Example},
		} {
			if part.words != "" {
				fmt.Fprintf(&text, "  %s %s\n", paint(color, faint, fmt.Sprintf("%-8s", part.title)), part.words)
			}
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// joined joins words of any string type.
func joined[S ~string](words []S) string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return strings.Join(all, ", ")
}
