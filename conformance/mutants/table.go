package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"snowglobe.test/conformance/mutants/trial"
	"snowglobe.test/conformance/mutants/workshop"
)

// pagePath is where the page about mutants is, in the repository of the module at root.
func pagePath(root string) string {
	return filepath.Join(workshop.Repository(root), "docs", "reference", "mutants.md")
}

func newTable() *cobra.Command {
	return &cobra.Command{
		Use:     "table",
		Short:   "Print the page about the verdicts that are kept",
		Example: `  go -C conformance/mutants run . table`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := workshop.Root(cmd.Context())
			if err != nil {
				return err
			}
			kept, err := readKept(root)
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), page(kept))
			return err
		},
	}
}

// score is how the trials of some mutants ended.
type score struct{ killed, excused, open, undecided int }

func (s *score) add(v trial.Verdict) {
	switch {
	case v.Result == trial.Killed:
		s.killed++
	case v.Reason != "":
		s.excused++
	case v.Result == trial.Undecided:
		s.undecided++
	default:
		s.open++
	}
}

// String is the part of the mutants that were killed, of those that a client can see.
func (s score) String() string {
	all := s.killed + s.open + s.undecided
	if all == 0 {
		return "-"
	}
	return strconv.Itoa(100*s.killed/all) + "%"
}

// scores are the scores of systems, and their sum.
func scores(verdicts []trial.Verdict) (bySystem map[string]*score, sum score) {
	bySystem = map[string]*score{}
	for _, v := range verdicts {
		if bySystem[v.System] == nil {
			bySystem[v.System] = &score{}
		}
		bySystem[v.System].add(v)
		sum.add(v)
	}
	return bySystem, sum
}

// bySystemNumber orders S2 before S10.
func bySystemNumber(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// page is the page about mutants.
func page(kept *trial.Kept) string {
	var out strings.Builder
	fmt.Fprintf(&out, `# Mutants of upstream

<!-- Generated: go -C conformance/mutants test . -run TestPageIsFresh -update -->

A mutant is a small change of upstream's source, here of Kubernetes %s: a negated condition,
a statement left out, another constant, a dropped return, two calls or arguments in the other
order, && for ||, an off-by-one comparison, or a patch written by hand. The
[conformance cases](conformance.md) run on a control plane with one mutant at a time; a mutant is
killed when a case fails. Cases run in virtual time, on memory.

    go -C conformance/mutants run . build
    go -C conformance/mutants run . run --sample 10 --seed 7 --fresh
    go -C conformance/mutants run . check --sample 10

Made are all mutants of a system's code, reached are those that a case or the start of the
control plane reaches, and tried are a sample of these. Excused are the survivors that no
client can see, for the reason given below; the score leaves them out. The system of a mutant
is that of its file, from conformance/mutants/mutation/systems.txt. S17 has no code in upstream's
server modules.

| system | made | reached | tried | killed | excused | open | undecided | score |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
`, kept.Release)
	bySystem, sum := scores(kept.Verdicts)
	var total trial.Count
	for _, system := range slices.SortedFunc(maps.Keys(kept.Systems), bySystemNumber) {
		count, s := kept.Systems[system], cmp.Or(bySystem[system], &score{})
		total.Made += count.Made
		total.Reached += count.Reached
		row(&out, system, count, *s)
	}
	row(&out, "all", total, sum)
	ways(&out, kept.Verdicts)
	survivors(&out, "Survivors", kept.Verdicts, func(v trial.Verdict) bool {
		return v.Result != trial.Killed &&
			v.Reason == ""
	})
	survivors(&out, "Excused", kept.Verdicts, func(v trial.Verdict) bool {
		return v.Result != trial.Killed &&
			v.Reason != ""
	})
	return out.String()
}

func row(w io.Writer, system string, count trial.Count, s score) {
	tried := s.killed + s.excused + s.open + s.undecided
	fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d | %d | %d | %s |\n",
		system, count.Made, count.Reached, tried, s.killed, s.excused, s.open, s.undecided, s)
}

// ways says how mutants were killed.
func ways(w io.Writer, verdicts []trial.Verdict) {
	var failed, crashed, hung int
	for _, v := range verdicts {
		switch v.How {
		case trial.ByFailure:
			failed++
		case trial.ByCrash:
			crashed++
		case trial.ByHang:
			hung++
		}
	}
	fmt.Fprintf(w, "\nOf the killed, %d failed a case, %d crashed the process and %d hung it.\n", failed, crashed, hung)
}

// survivors lists mutants that were not killed, by system.
func survivors(w io.Writer, title string, verdicts []trial.Verdict, listed func(trial.Verdict) bool) {
	fmt.Fprintf(w, "\n## %s\n", title)
	found := slices.DeleteFunc(slices.Clone(verdicts), func(v trial.Verdict) bool { return !listed(v) })
	slices.SortStableFunc(found, func(a, b trial.Verdict) int { return bySystemNumber(a.System, b.System) })
	if len(found) == 0 {
		fmt.Fprint(w, "\nNone.\n")
	}
	system := ""
	for _, v := range found {
		if v.System != system {
			system = v.System
			fmt.Fprintf(w, "\n### %s\n\n", system)
		}
		fmt.Fprintf(w, "- `%s`: `%s`", v.ID, strings.ReplaceAll(v.Change, "`", "'"))
		if v.Result == trial.Undecided {
			fmt.Fprintf(w, " (after %d of %d cases)", v.Ran, v.Of)
		}
		if v.Reason != "" {
			fmt.Fprintf(w, " — %s", v.Reason)
		}
		fmt.Fprintln(w)
	}
}

// told is a verdict as one line.
func told(v trial.Verdict) string {
	switch v.Result {
	case trial.Killed:
		return fmt.Sprintf("%-4s %s: killed by %s, which %s", v.System, v.ID, v.By, v.How)
	case trial.Undecided:
		return fmt.Sprintf("%-4s %s: undecided after %d of %d cases: %s", v.System, v.ID, v.Ran, v.Of, v.Change)
	}
	return fmt.Sprintf("%-4s %s: survived %d cases: %s", v.System, v.ID, v.Of, v.Change)
}

// summary is the score by system, and the survivors.
func summary(verdicts []trial.Verdict) string {
	var out strings.Builder
	bySystem, sum := scores(verdicts)
	for _, system := range slices.SortedFunc(maps.Keys(bySystem), bySystemNumber) {
		s := bySystem[system]
		fmt.Fprintf(&out, "%-4s %3d killed %3d survived %3d undecided %5s\n", system, s.killed, s.open+s.excused,
			s.undecided, s)
	}
	fmt.Fprintf(&out, "all  %3d killed %3d survived %3d undecided %5s\n", sum.killed, sum.open+sum.excused,
		sum.undecided, sum)
	return out.String()
}
