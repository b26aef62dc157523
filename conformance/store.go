package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"snowglobe.test/conformance/store"
	"snowglobe.test/conformance/suite"
)

// StoreOptions are the options of judging a store from the command line.
type StoreOptions struct {
	// Config names the store.
	store.Config
	// Level is that of the cases; empty means store.Kubernetes.
	Level store.Level
	// Focus is a regular expression for ID or promise; empty means all cases.
	Focus string
	// JUnit is the file for a JUnit report; empty means none.
	JUnit string
	// Output is "text" (the default) or "json".
	Output string
	// Out receives the output; nil means standard output.
	Out io.Writer
	// Notices receives what will be written to the store, before that; nil means standard
	// error.
	Notices io.Writer
}

// ExecuteStore judges a store. The error wraps ErrFailed if a promise is broken; other errors
// say why it could not be judged.
func ExecuteStore(ctx context.Context, opts StoreOptions) (Report, error) {
	cases, err := opts.cases()
	if err != nil {
		return Report{}, err
	}
	reporter, err := Options{Out: opts.Out, Output: opts.Output}.reporter()
	if err != nil {
		return Report{}, err
	}
	report, err := judge(ctx, opts, cases, reporter)
	errs := []error{err, report.Err()}
	if opts.JUnit != "" {
		errs = append(errs, report.WriteJUnit(opts.JUnit))
	}
	return report, errors.Join(errs...)
}

func (o StoreOptions) cases() ([]store.Case, error) {
	level := o.Level
	if level == "" {
		level = store.Kubernetes
	}
	return store.Select(store.Cases(), level, o.Focus)
}

// judge runs the cases, one after another, and reports them.
func judge(ctx context.Context, opts StoreOptions, cases []store.Case, reporter Reporter) (Report, error) {
	report := Report{Target: strings.Join(opts.Endpoints, ","), Date: time.Now(), Start: time.Now()}
	err := report.judge(ctx, opts, cases, reporter)
	for _, left := range cases[len(report.Results):] {
		report.Results = append(report.Results, Result{Case: described(left), State: NotRun, Finding: Finding{Message: err.Error()}, Start: time.Now()})
	}
	report.Took = time.Since(report.Start)
	if err != nil {
		report.Error = err.Error()
		err = fmt.Errorf("conformance: %w", err)
	}
	reporter.End(report)
	return report, err
}

// judge adds the results. If the error is not nil, some may be missing.
func (r *Report) judge(ctx context.Context, opts StoreOptions, cases []store.Case, reporter Reporter) (err error) {
	opened, err := store.Open(ctx, opts.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close(ctx)) }()
	notices := opts.Notices
	if notices == nil {
		notices = os.Stderr
	}
	if _, err := fmt.Fprintln(notices, opened.Notice()); err != nil {
		return err
	}
	r.Cluster = r.Target
	reporter.Begin(r.Target, len(cases))
	for _, c := range cases {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		result := judged(ctx, opened, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if result.State == Failed {
			if gone := opened.Check(ctx); gone != nil {
				return fmt.Errorf("the store is gone: %w", gone)
			}
		}
		r.Results = append(r.Results, result)
		reporter.Case(result)
	}
	return nil
}

// judged judges a store by one case.
func judged(ctx context.Context, s *store.Store, c store.Case) Result {
	result := Result{Case: described(c), State: Passed, Start: time.Now()}
	outcome := s.Judge(ctx, c)
	result.Took, result.Location = outcome.Took, outcome.Location
	switch {
	case outcome.Broken != "":
		result.State, result.Message = Failed, outcome.Broken
	case outcome.Skipped != "":
		result.State, result.Message = NotApplicable, outcome.Skipped
	}
	return result
}

// described is a store's case as reports have it.
func described(c store.Case) suite.Case {
	return suite.Case{
		ID: c.ID, System: "store", Area: suite.Area(c.Area), Promise: c.Promise,
		Source: c.Source, Level: suite.Level(c.Level), Failure: c.Failure,
	}
}

// ListStore writes the cases that the options choose, as "text" or "json".
func ListStore(w io.Writer, opts StoreOptions) error {
	cases, err := opts.cases()
	if err != nil {
		return err
	}
	switch opts.Output {
	case "", OutputText:
		var out strings.Builder
		for _, c := range cases {
			fmt.Fprintf(&out, "%-45s %s\n", c.ID, c.Promise)
		}
		_, err := io.WriteString(w, out.String())
		return err
	case OutputJSON:
		var all []suite.Case
		for _, c := range cases {
			all = append(all, described(c))
		}
		return writeJSON(w, all)
	}
	return fmt.Errorf("conformance: list format %q is not known; use %q or %q", opts.Output, OutputText, OutputJSON)
}
