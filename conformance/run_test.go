package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/gomega"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
	"snowglobe.test/conformance/suite"
)

// nowhere is a source whose cluster no case uses.
type nowhere struct {
	err    error
	closed *bool
}

func (n nowhere) Open(context.Context) (engine.Target[*suite.T], error) {
	if n.err != nil {
		return nil, n.err
	}
	cluster := &suite.Cluster{Name: "nowhere", Config: &rest.Config{Host: "http://127.0.0.1:1"}}
	return hooked{Target: cluster, close: func(context.Context) error {
		if n.closed != nil {
			*n.closed = true
		}
		return nil
	}}, nil
}

// hooked is a target of which a test decides whether it is there, and what closes it.
type hooked struct {
	engine.Target[*suite.T]
	check, close func(ctx context.Context) error
}

func (h hooked) Check(ctx context.Context) error {
	if h.check == nil {
		return h.Target.Check(ctx)
	}
	return h.check(ctx)
}

func (h hooked) Close(ctx context.Context) error { return h.close(ctx) }

func (n nowhere) String() string { return "a fake" }

// made returns a case with a fixed area and promise.
func made(id string, needs suite.Needs, test func(ctx context.Context, t *suite.T)) suite.Case {
	return suite.Case{ID: id, System: "S0", Area: "area", Promise: id + " holds.", Needs: needs, Test: test}
}

func passes(context.Context, *suite.T) {}

func fails(_ context.Context, t *suite.T) {
	t.Expect(1).To(gomega.Equal(2), "counting")
}

func panics(context.Context, *suite.T) { panic("at the case") }

// plain formats results without what differs from run to run.
func plain(report engine.Report) []string {
	var lines []string
	for _, r := range report.Results {
		message, _, _ := strings.Cut(r.Message, "\n")
		lines = append(lines, strings.TrimSpace(strings.Join([]string{r.Case.ID, string(r.State), message, r.Location}, " ")))
	}
	return lines
}

func TestRunReportsResults(t *testing.T) {
	var tidied []string
	report, err := engine.Run(t.Context(), nowhere{}, []suite.Case{
		made("passes", suite.Needs{}, passes),
		made("fails", suite.Needs{}, fails),
		made("panics", suite.Needs{}, panics),
		made("needs a release", suite.Needs{Release: true}, fails),
		made("needs another", suite.Needs{Launch: true}, fails),
		made("tidies up", suite.Needs{}, func(_ context.Context, t *suite.T) {
			for _, name := range []string{"first", "second"} {
				t.Cleanup(func(context.Context) error { tidied = append(tidied, name); return nil })
			}
			t.Expect(true).To(gomega.BeFalse())
		}),
		made("leaves something", suite.Needs{}, func(_ context.Context, t *suite.T) {
			t.Cleanup(func(context.Context) error { return errors.New("it would not go") })
		}),
	}, nil)
	require.NoError(t, err)
	want := []string{
		"passes passed",
		"fails failed counting run_test.go:LINE",
		"panics failed panic: at the case",
		"needs a release not applicable needs a known release: it is not known which one runs at nowhere",
		"needs another not applicable needs control planes of its own: none can be started beside nowhere",
		"tidies up failed Expected run_test.go:LINE",
		"leaves something failed clean up: it would not go",
	}
	got := plain(report)
	for i := range got {
		got[i] = lineNumber.ReplaceAllString(got[i], "_test.go:LINE")
	}
	assert.Empty(t, cmp.Diff(want, got))
	assert.Empty(t, cmp.Diff([]string{"second", "first"}, tidied))
	err = report.Err()
	assert.True(t, errors.Is(err, engine.ErrFailed) && strings.Contains(err.Error(), "4 of 7 cases failed: fails panics tidies up leaves something"), "error %v", err)
}

func TestCaseIsLimited(t *testing.T) {
	forever := made("waits", suite.Needs{}, func(ctx context.Context, t *suite.T) {
		t.Eventually(ctx, func() bool { return false }).Should(gomega.BeTrue())
	})
	wall := time.Now()
	report, err := engine.Simulate(t.Context(), nowhere{}, []suite.Case{forever}, nil)
	require.NoError(t, err)
	result := report.Results[0]
	assert.True(t, result.State == engine.Failed && result.Took == 5*time.Minute, "%s after %s: %s", result.State, result.Took, result.Message)
	assert.Less(t, time.Since(wall), time.Minute, "what five virtual minutes took")
}

func TestRunIsInterrupted(t *testing.T) {
	for name, run := range map[string]func(context.Context, engine.Source[*suite.T], []suite.Case, engine.Reporter, ...engine.Option) (engine.Report, error){
		"real time": engine.Run[*suite.T], "virtual time": engine.Simulate[*suite.T],
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			closed := false
			reason := errors.New("interrupt")
			report, err := run(ctx, nowhere{closed: &closed}, []suite.Case{
				made("before", suite.Needs{}, passes),
				made("during", suite.Needs{}, func(context.Context, *suite.T) { cancel(reason) }),
				made("after", suite.Needs{}, fails),
			}, nil)
			assert.ErrorIs(t, err, reason)
			assert.Empty(t, cmp.Diff([]string{"before passed", "during passed", "after not run interrupt"}, plain(report)))
			assert.True(t, closed, "the cluster was left open")
		})
	}
}

func TestRunWithoutTarget(t *testing.T) {
	reason := errors.New("no such thing")
	var out bytes.Buffer
	report, err := engine.Run(t.Context(), nowhere{err: reason}, []suite.Case{made("a", suite.Needs{}, passes)}, reports.Text{Out: &out})
	assert.True(t, errors.Is(err, reason) && report.Error == reason.Error(), "error %v, report %v", err, report)
	assert.Empty(t, cmp.Diff([]string{"a not run no such thing"}, plain(report)))
	assert.Empty(t, out.String(), "the error says it all")
}

func TestReports(t *testing.T) {
	var text, document bytes.Buffer
	cases := []suite.Case{
		made("S0/passes", suite.Needs{}, passes),
		made("S0/fails", suite.Needs{}, fails),
		made("S0/needs", suite.Needs{Release: true}, passes),
	}
	report, err := engine.Simulate(t.Context(), nowhere{}, cases, reports.Text{Out: &text})
	require.NoError(t, err)
	want := `3 cases on a fake
ok   S0/passes (0s)
FAIL S0/fails (0s)
     promised  S0/fails holds.
     found     counting
               Expected
                   <int>: 1
               to equal
                   <int>: 2
     step      run_test.go:LINE
n/a  S0/needs (needs a known release: it is not known which one runs at nowhere)
a fake: 1 passed, 1 failed, 1 not applicable in 0s of virtual time
`
	assert.Empty(t, cmp.Diff(want, lineNumber.ReplaceAllString(text.String(), "_test.go:LINE")))

	reports.JSON{Out: &document}.End(report)
	var read engine.Report
	require.NoError(t, json.Unmarshal(document.Bytes(), &read))
	assert.Empty(t, cmp.Diff(plain(report), plain(read)))

	suites := readJUnit(t, report)
	assert.Equal(t, 3, suites.Tests, "tests")
	assert.Equal(t, 1, suites.Failures, "failures")
	assert.Equal(t, 1, suites.Disabled, "disabled")
	tests := suites.TestSuites[0].TestCases
	assert.Equal(t, "area S0/passes: S0/passes holds.", tests[0].Name, "name")
	failure, skipped := tests[1].Failure, tests[2].Skipped
	assert.True(t, failure != nil && strings.Contains(failure.Description, "run_test.go"), "failure %+v", failure)
	assert.True(t, skipped != nil && strings.Contains(skipped.Message, "needs a known release"), "skipped %+v", skipped)
}

// readJUnit writes a report as JUnit, in a folder that is not there yet, and reads it.
func readJUnit(t *testing.T, report engine.Report) (suites reporters.JUnitTestSuites) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "made", "junit.xml")
	require.NoError(t, reports.WriteJUnit(file, report))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(content, &suites))
	return suites
}
