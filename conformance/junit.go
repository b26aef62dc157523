package conformance

import (
	"encoding/xml"
	"fmt"

	"snowglobe.test/conformance/transcript"
	"snowglobe.test/internal/outfile"
)

// junitSuites is a JUnit report, as CI systems read it. There is only one suite in it.
type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	junitCounts
	Suite junitSuite `xml:"testsuite"`
}

type junitCounts struct {
	Tests    int     `xml:"tests,attr"`
	Disabled int     `xml:"disabled,attr"`
	Errors   int     `xml:"errors,attr"` // none: a case that breaks is one that fails
	Failures int     `xml:"failures,attr"`
	Seconds  float64 `xml:"time,attr"`
}

type junitSuite struct {
	Name    string `xml:"name,attr"`
	Package string `xml:"package,attr"`
	junitCounts
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Status  string        `xml:"status,attr"`
	Seconds float64       `xml:"time,attr"`
	Skipped *junitSkipped `xml:"skipped"`
	Failure *junitFailure `xml:"failure"`
}

// junitSkippedStatus is the status of what is not applicable, or did not run.
const junitSkippedStatus = "skipped"

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitFailure struct {
	Message     string `xml:"message,attr"`
	Type        string `xml:"type,attr"`
	Description string `xml:",chardata"`
}

// WriteJUnit writes the report as JUnit XML, for CI systems. It overwrites an existing
// file and creates missing folders.
func (r Report) WriteJUnit(path string) error {
	text, err := xml.MarshalIndent(r.junit(), "", "  ")
	if err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	if err := outfile.Write(path, append([]byte(xml.Header), append(text, '\n')...)); err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	return nil
}

// junit converts the report. What is not applicable, or did not run, was skipped in JUnit's terms.
func (r Report) junit() junitSuites {
	counts := junitCounts{
		Tests: len(r.Results), Disabled: r.Count(NotApplicable) + r.Count(NotRun), Failures: r.Count(Failed), Seconds: r.Took.Seconds(),
	}
	suite := junitSuite{
		Name: "conformance of " + r.Target, Package: "snowglobe.test/conformance", junitCounts: counts,
		Timestamp: r.Start.Format("2006-01-02T15:04:05"),
	}
	for _, result := range r.Results {
		converted := junitCase{
			Name:  fmt.Sprintf("%s %s: %s", result.Case.Area, result.Case.ID, result.Case.Promise),
			Class: suite.Name, Status: string(result.State), Seconds: result.Took.Seconds(),
		}
		switch result.State {
		case Failed:
			converted.Failure = &junitFailure{result.Message, string(Failed), result.explain(allExchanges, transcript.Exchange.Whole)}
		case NotApplicable, NotRun:
			converted.Status, converted.Skipped = junitSkippedStatus, &junitSkipped{result.Message}
		}
		suite.Cases = append(suite.Cases, converted)
	}
	return junitSuites{junitCounts: counts, Suite: suite}
}
