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
	"k8s.io/client-go/rest"

	"snowglobe.test/conformance"
)

// nowhere is a source whose cluster no case uses.
type nowhere struct {
	err    error
	closed *bool
}

func (n nowhere) Open(context.Context) (*conformance.Cluster, error) {
	if n.err != nil {
		return nil, n.err
	}
	return &conformance.Cluster{Name: "nowhere", Config: &rest.Config{Host: "http://127.0.0.1:1"}, Close: func(context.Context) error {
		if n.closed != nil {
			*n.closed = true
		}
		return nil
	}}, nil
}

func (n nowhere) String() string { return "a fake" }

// made returns a case with a fixed area and promise.
func made(id string, needs conformance.Needs, test func(ctx context.Context, t *conformance.Target)) conformance.Case {
	return conformance.Case{ID: id, System: "S0", Area: "area", Promise: id + " holds.", Needs: needs, Test: test}
}

func passes(context.Context, *conformance.Target) {}

func fails(_ context.Context, t *conformance.Target) {
	t.Expect(1).To(gomega.Equal(2), "counting")
}

func panics(context.Context, *conformance.Target) { panic("at the case") }

// plain formats results without what differs from run to run.
func plain(report conformance.Report) []string {
	var lines []string
	for _, r := range report.Results {
		message, _, _ := strings.Cut(r.Message, "\n")
		lines = append(lines, strings.TrimSpace(strings.Join([]string{r.Case.ID, string(r.State), message, r.Location}, " ")))
	}
	return lines
}

func TestRunReportsResults(t *testing.T) {
	var tidied []string
	report, err := conformance.Run(t.Context(), nowhere{}, []conformance.Case{
		made("passes", conformance.Needs{}, passes),
		made("fails", conformance.Needs{}, fails),
		made("panics", conformance.Needs{}, panics),
		made("needs a release", conformance.Needs{Release: true}, fails),
		made("needs another", conformance.Needs{Launch: true}, fails),
		made("tidies up", conformance.Needs{}, func(_ context.Context, t *conformance.Target) {
			for _, name := range []string{"first", "second"} {
				t.Cleanup(func(context.Context) error { tidied = append(tidied, name); return nil })
			}
			t.Expect(true).To(gomega.BeFalse())
		}),
		made("leaves something", conformance.Needs{}, func(_ context.Context, t *conformance.Target) {
			t.Cleanup(func(context.Context) error { return errors.New("it would not go") })
		}),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"passes passed",
		"fails failed counting run_test.go:LINE",
		"panics failed panic: at the case",
		"needs a release skipped needs a known release: it is not known which one runs at nowhere",
		"needs another skipped needs control planes of its own, with hooks held: none can be started beside nowhere",
		"tidies up failed Expected run_test.go:LINE",
		"leaves something failed clean up: it would not go",
	}
	got := plain(report)
	for i := range got {
		got[i] = lineNumber.ReplaceAllString(got[i], "_test.go:LINE")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"second", "first"}, tidied); diff != "" {
		t.Error(diff)
	}
	if err := report.Err(); !errors.Is(err, conformance.ErrFailed) || !strings.Contains(err.Error(), "4 of 7 cases failed: fails panics tidies up leaves something") {
		t.Errorf("error %v", err)
	}
}

func TestCaseIsLimited(t *testing.T) {
	forever := made("waits", conformance.Needs{}, func(ctx context.Context, t *conformance.Target) {
		t.Eventually(ctx, func() bool { return false }).Should(gomega.BeTrue())
	})
	wall := time.Now()
	report, err := conformance.Simulate(t.Context(), nowhere{}, []conformance.Case{forever}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result := report.Results[0]; result.State != conformance.Failed || result.Took != time.Minute {
		t.Errorf("%s after %s: %s", result.State, result.Took, result.Message)
	}
	if took := time.Since(wall); took >= time.Minute {
		t.Errorf("a virtual minute took %s", took)
	}
}

func TestRunIsInterrupted(t *testing.T) {
	for name, run := range map[string]func(context.Context, conformance.Source, []conformance.Case, conformance.Reporter) (conformance.Report, error){
		"real time": conformance.Run, "virtual time": conformance.Simulate,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			closed := false
			reason := errors.New("interrupt")
			report, err := run(ctx, nowhere{closed: &closed}, []conformance.Case{
				made("before", conformance.Needs{}, passes),
				made("during", conformance.Needs{}, func(context.Context, *conformance.Target) { cancel(reason) }),
				made("after", conformance.Needs{}, fails),
			}, nil)
			if !errors.Is(err, reason) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff([]string{"before passed", "during passed", "after skipped not run: interrupt"}, plain(report)); diff != "" {
				t.Error(diff)
			}
			if !closed {
				t.Error("the cluster was left open")
			}
		})
	}
}

func TestRunWithoutTarget(t *testing.T) {
	reason := errors.New("no such thing")
	var out bytes.Buffer
	report, err := conformance.Run(t.Context(), nowhere{err: reason}, []conformance.Case{made("a", conformance.Needs{}, passes)}, conformance.Text{Out: &out})
	if !errors.Is(err, reason) || len(report.Results) != 0 {
		t.Errorf("error %v, report %v", err, report)
	}
	if want := "1 cases on a fake\na fake: 0 passed, 0 failed, 0 skipped in 0s\n"; out.String() != want {
		t.Errorf("said %q, want %q", out.String(), want)
	}
}

func TestReports(t *testing.T) {
	var text, document bytes.Buffer
	cases := []conformance.Case{
		made("S0/passes", conformance.Needs{}, passes),
		made("S0/fails", conformance.Needs{}, fails),
		made("S0/needs", conformance.Needs{Release: true}, passes),
	}
	report, err := conformance.Simulate(t.Context(), nowhere{}, cases, conformance.Text{Out: &text})
	if err != nil {
		t.Fatal(err)
	}
	want := `3 cases on a fake
ok   S0/passes (0s)
FAIL S0/fails (0s)
     promise: S0/fails holds.
     at: run_test.go:LINE
     counting
     Expected
         <int>: 1
     to equal
         <int>: 2
skip S0/needs (needs a known release: it is not known which one runs at nowhere)
a fake: 1 passed, 1 failed, 1 skipped in 0s of virtual time
`
	if diff := cmp.Diff(want, lineNumber.ReplaceAllString(text.String(), "_test.go:LINE")); diff != "" {
		t.Error(diff)
	}

	conformance.JSON{Out: &document}.End(report)
	var read conformance.Report
	if err := json.Unmarshal(document.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(report), plain(read)); diff != "" {
		t.Error(diff)
	}

	file := filepath.Join(t.TempDir(), "made", "junit.xml")
	if err := report.WriteJUnit(file); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var suites reporters.JUnitTestSuites
	if err := xml.Unmarshal(content, &suites); err != nil {
		t.Fatal(err)
	}
	if suites.Tests != 3 || suites.Failures != 1 || suites.Disabled != 1 {
		t.Errorf("%d tests, %d failures, %d disabled", suites.Tests, suites.Failures, suites.Disabled)
	}
	tests := suites.TestSuites[0].TestCases
	if got := tests[0].Name; got != "area S0/passes: S0/passes holds." {
		t.Errorf("name %q", got)
	}
	if tests[1].Failure == nil || !strings.Contains(tests[1].Failure.Description, "run_test.go") {
		t.Errorf("failure %+v", tests[1].Failure)
	}
	if tests[2].Skipped == nil || !strings.Contains(tests[2].Skipped.Message, "needs a known release") {
		t.Errorf("skipped %+v", tests[2].Skipped)
	}
}
