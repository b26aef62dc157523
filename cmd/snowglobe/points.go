package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/internal/nearest"
	"snowglobe.test/scenarios/story"
)

func newPoints() *cobra.Command {
	output := outputText
	cmd := &cobra.Command{
		Use:   "points [PATTERN]",
		Short: "List the points where operations can be held, delayed, failed, lost or reordered",
		Long: `List the points where rules can hold, delay, fail, lose or reorder operations of a
control plane. With a PATTERN, which names points the way a rule does, show what rules
can say at those points.
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
		name := story.Paint(color, bold, k.Name) + strings.Repeat(" ", width-len(k.Name))
		if _, err := fmt.Fprintf(out, "%s  %s\n", name, k.Meaning); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "\n%s\n", story.Paint(color, faint, "snowglobe points PATTERN shows what rules can say at a point"))
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
		fmt.Fprintf(&text, "%s  %s\n", story.Paint(color, bold, k.Name), k.Meaning)
		for _, part := range []struct {
			title string
			words []string
		}{
			{"names", k.Names},
			{"phases", nearest.Texts(k.Phases)},
			{"verbs", k.Verbs},
			{"keys", k.Fields},
			{"actions", nearest.Texts(k.Actions)},
			{"errors", nearest.Texts(k.Failures)},
			{"example", []string{k.Example}},
		} {
			if words := strings.Join(part.words, ", "); words != "" {
				fmt.Fprintf(&text, "  %s %s\n", story.Paint(color, faint, fmt.Sprintf("%-8s", part.title)), words)
			}
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}
