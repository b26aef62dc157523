package conformance

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
	"snowglobe.test/conformance/store"
)

// StoreOptions are the options of judging a store from the command line.
type StoreOptions struct {
	// Config names the store.
	store.Config
	// Level is that of the cases; empty means store.Kubernetes.
	Level engine.Level
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

// ExecuteStore judges a store. The error wraps engine.ErrFailed if a promise is broken; other errors
// say why it could not be judged.
func ExecuteStore(ctx context.Context, opts StoreOptions) (engine.Report, error) {
	cases, err := opts.Cases()
	if err != nil {
		return engine.Report{}, err
	}
	reporter, err := reports.For(opts.Output, opts.Out)
	if err != nil {
		return engine.Report{}, err
	}
	told, err := engine.Run(ctx, opts.Config, cases, reporter,
		engine.Announced(cmp.Or[io.Writer](opts.Notices, os.Stderr)))
	errs := []error{err, told.Err()}
	if opts.JUnit != "" {
		errs = append(errs, reports.WriteJUnit(opts.JUnit, told))
	}
	return told, errors.Join(errs...)
}

// Cases returns those that the options choose.
func (o StoreOptions) Cases() ([]store.Case, error) {
	cases, err := store.Of(cmp.Or(o.Level, store.Kubernetes))
	if err != nil {
		return nil, err
	}
	return engine.Select(cases, engine.Selection{Focus: o.Focus})
}
