package reports

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"snowglobe.test/conformance/engine"
)

// Read reads a report that was written with --output json.
func Read(path string) (engine.Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return engine.Report{}, fmt.Errorf("report: %w", err)
	}
	var report engine.Report
	err = json.Unmarshal(text, &report)
	if err == nil {
		err = validate(report)
	}
	if err != nil {
		return engine.Report{}, fmt.Errorf("%s is not a report: %w; write one with: snowglobe conformance "+
			"--output json", path, err)
	}
	return report, nil
}

// validate says what a report lacks.
func validate(r engine.Report) error {
	if r.Target == "" || len(r.Results) == 0 {
		return errors.New("it names no target, or has no results")
	}
	for _, result := range r.Results {
		switch result.State {
		case engine.Passed, engine.Failed, engine.NotApplicable, engine.NotRun:
		default:
			return fmt.Errorf("the state %q of case %q is not known", result.State, result.Case.ID)
		}
		if result.Case.ID == "" || result.Case.System == "" {
			return errors.New("it has a case without a name")
		}
	}
	return nil
}
