package reports

import (
	"encoding/xml"
	"fmt"

	"github.com/onsi/ginkgo/v2/reporters"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/transcript"
	"snowglobe.test/internal/outfile"
)

// WriteJUnit writes a report as JUnit XML, for CI systems. It overwrites an existing
// file and creates missing folders.
func WriteJUnit(path string, r engine.Report) error {
	text, err := xml.MarshalIndent(junit(r), "", "  ")
	if err == nil {
		err = outfile.Write(path, append([]byte(xml.Header), append(text, '\n')...))
	}
	if err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	return nil
}

// junit converts a report. What is not applicable, or did not run, was skipped in JUnit's terms; there
// are no errors, since a case that breaks is one that fails.
func junit(r engine.Report) reporters.JUnitTestSuites {
	suite := reporters.JUnitTestSuite{
		Name: "conformance of " + r.Target, Package: "snowglobe.test/conformance", Time: r.Took.Seconds(),
		Tests: len(r.Results), Disabled: r.Count(engine.NotApplicable) + r.Count(engine.NotRun),
		Failures:  r.Count(engine.Failed),
		Timestamp: r.Start.Format("2006-01-02T15:04:05"),
	}
	for _, result := range r.Results {
		converted := reporters.JUnitTestCase{
			Name:      fmt.Sprintf("%s %s: %s", result.Case.Area, result.Case.ID, result.Case.Promise),
			Classname: suite.Name, Status: string(result.State), Time: result.Took.Seconds(),
		}
		switch result.State {
		case engine.Failed:
			converted.Failure = &reporters.JUnitFailure{
				Message: result.Message, Type: string(engine.Failed),
				Description: explain(result, allExchanges, transcript.Exchange.Whole),
			}
		case engine.NotApplicable, engine.NotRun:
			converted.Status, converted.Skipped = "skipped", &reporters.JUnitSkipped{Message: result.Message}
		}
		suite.TestCases = append(suite.TestCases, converted)
	}
	return reporters.JUnitTestSuites{
		Tests: suite.Tests, Disabled: suite.Disabled, Failures: suite.Failures, Time: suite.Time,
		TestSuites: []reporters.JUnitTestSuite{suite},
	}
}
