package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"snowglobe.test/conformance/mutants/trial"
	"snowglobe.test/conformance/mutants/workshop"
)

// measured is which mutants cases reach. It is measured anew when the program has changed.
func measured(ctx context.Context, built workshop.Built, realTime bool, progress io.Writer) (*trial.Baseline, error) {
	kind := "virtual"
	if realTime {
		kind = "real"
	}
	file := filepath.Join(filepath.Dir(built.Program), "baseline-"+kind+".json")
	var kept struct {
		Sum      string
		Baseline *trial.Baseline
	}
	if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &kept) == nil && kept.Sum == built.Sum {
		return kept.Baseline, nil
	}
	fmt.Fprintln(progress, "mutants: running all cases without a mutant, to see which mutants they reach")
	n := 0
	kept.Sum = built.Sum
	var err error
	kept.Baseline, err = trial.Measure(ctx, built.Process, trial.Order{RealTime: realTime}, func(line trial.Line) {
		if n++; n%50 == 0 {
			fmt.Fprintf(progress, "mutants: %d cases have run\n", n)
		}
	})
	if err != nil {
		return nil, err
	}
	if len(kept.Baseline.Unfit) > 0 {
		fmt.Fprintln(progress, "mutants: these cases do not pass without a mutant, and judge none:",
			strings.Join(kept.Baseline.Unfit, ", "))
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	return kept.Baseline, os.WriteFile(file, text, 0o600)
}
