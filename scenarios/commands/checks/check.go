package checks

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/internal/wall"
	"snowglobe.test/scenarios/checkers"
	"snowglobe.test/scenarios/engine"
)

func (c *Checks) Check() engine.Command {
	return engine.Command{
		Name:      "check",
		Args:      "[CHECK...]",
		Asserts:   true,
		FullTrace: true,
		Summary:   "check everything that clients were told so far against what Kubernetes promises",
		Details: `It looks at every answer and every watch event, of all clients and servers of the
script: reads and writes of an object have an order (linearizability), watches are
complete and in order (watch), lists agree with watches (list-watch), no client goes back
in time (monotonic-reads), deleted objects stay deleted (resurrection), and finalizers
keep their objects (finalizers). Without a CHECK it runs all of them. It fails if a
promise is broken, or if that can't be decided.`,
		Example: "check\ncheck linearizability watch",
		Static: func(_ *pflag.FlagSet, args []string) error {
			_, err := checkersOf(args)
			return err
		},
		Run: func(ctx context.Context, args []string) error {
			chosen, _ := checkersOf(args)
			judged := wall.Timing(&c.Spent)
			report, err := judge(ctx, c.run.Story.Records(), chosen)
			judged()
			if err != nil {
				return err
			}
			if report.Verdict() != checkers.Holds {
				return &BrokenError{report}
			}
			fmt.Fprintln(&c.run.Stdout, report)
			return nil
		},
	}
}

// BrokenError says that promises are broken, or that it can't be decided whether they are.
type BrokenError struct{ Report checkers.Report }

// Error implements error.
func (e *BrokenError) Error() string { return e.Report.String() }

// checkersOf finds checks by their names; no name means all.
func checkersOf(names []string) ([]checkers.Checker, error) {
	var found []checkers.Checker
	var known []string
	for _, c := range checkers.All() {
		known = append(known, c.Name())
		if len(names) == 0 || slices.Contains(names, c.Name()) {
			found = append(found, c)
		}
	}
	for _, name := range names {
		if err := engine.CheckName("there is no check", name, known); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// judge lets checkers judge the story. The control planes of a script have one store
// and, in the story, one order; so they are judged as servers of one control plane.
func judge(ctx context.Context, records []trace.Record, chosen []checkers.Checker) (checkers.Report, error) {
	watches := map[string]int{} // of the control planes before each
	count := 0
	var newest int64 // revision of the store
	history := make([]trace.Record, 0, len(records))
	for _, rec := range records {
		if write, ok := rec.Event.(trace.Write); ok {
			if write.Revision <= newest {
				rec.Event = trace.Note{} // another control plane has recorded it
			}
			newest = max(newest, write.Revision)
		}
		if _, known := watches[rec.ControlPlane]; !known {
			watches[rec.ControlPlane] = count
		}
		if event, ok := rec.Event.(trace.WatchEvent); ok {
			event.Watch += watches[rec.ControlPlane]
			count = max(count, event.Watch)
			rec.Event = event
		}
		rec.Server, rec.ControlPlane = rec.ControlPlane+"/"+rec.Server, ""
		history = append(history, rec)
	}
	h, err := checkers.FromTrace(history)
	if err != nil {
		return checkers.Report{}, err
	}
	// Between two control planes, no server has seen what the store did.
	h.Complete = h.Complete && len(watches) == 1
	return checkers.Check(ctx, h, chosen...), nil
}
