package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/storage/external"
)

// Options are the options of one run from the command line.
type Options struct {
	// Store the control plane is launched on: "memory" (the default), "embedded",
	// or the URLs of an etcd, separated by commas.
	Store string
	// Kubeconfig names an existing cluster to test instead of launching one.
	Kubeconfig string
	// VirtualTime runs the control plane and the cases in virtual time, on memory.
	VirtualTime bool
	// Focus is a regular expression for ID, area or promise; empty means all cases.
	Focus string
	// JUnit is the file for a JUnit report; empty means none.
	JUnit string
	// Output is "text" (the default) or "json".
	Output string
	// Out receives the output; nil means standard output.
	Out io.Writer
}

// The values of Options.Store that are not URLs, and of Options.Output.
const (
	StoreMemory   = "memory"
	StoreEmbedded = "embedded"
	OutputText    = "text"
	OutputJSON    = "json"
	// OutputMarkdown is for List only.
	OutputMarkdown = "markdown"
)

// Execute runs the cases. The error wraps ErrFailed if a case failed; other errors say
// why cases could not run.
func Execute(ctx context.Context, opts Options) (Report, error) {
	source, err := opts.source()
	if err != nil {
		return Report{}, err
	}
	cases, err := Select(Cases(), opts.Focus)
	if err != nil {
		return Report{}, err
	}
	reporter, err := opts.reporter()
	if err != nil {
		return Report{}, err
	}
	start := Run
	if opts.VirtualTime {
		start = Simulate
	}
	report, err := start(ctx, source, cases, reporter)
	errs := []error{err, report.Err()}
	if opts.JUnit != "" {
		errs = append(errs, report.WriteJUnit(opts.JUnit))
	}
	return report, errors.Join(errs...)
}

func (o Options) source() (Source, error) {
	switch {
	case o.Kubeconfig != "" && o.Store != "":
		return nil, errors.New("conformance: both a store and a kubeconfig are given; a kubeconfig names a cluster that has its store")
	case o.Kubeconfig != "" && o.VirtualTime:
		return nil, errors.New("conformance: a cluster behind a kubeconfig lives in real time; leave virtual time out")
	case o.Kubeconfig != "":
		if _, err := os.Stat(o.Kubeconfig); err != nil {
			return nil, fmt.Errorf("conformance: kubeconfig: %w", err)
		}
		return Kubeconfig{Path: o.Kubeconfig}, nil
	case o.Store == "" || o.Store == StoreMemory:
		return Memory(), nil
	case o.VirtualTime:
		return nil, fmt.Errorf("conformance: store %q uses sockets, which do not work in virtual time; use %q", o.Store, StoreMemory)
	case o.Store == StoreEmbedded:
		return Embedded(), nil
	case strings.Contains(o.Store, "://"):
		return External(external.Config{URLs: strings.Split(o.Store, ",")})
	}
	return nil, fmt.Errorf("conformance: store %q is not known; use %q, %q or the URL of an etcd, like http://127.0.0.1:2379",
		o.Store, StoreMemory, StoreEmbedded)
}

func (o Options) reporter() (Reporter, error) {
	out := cmp.Or[io.Writer](o.Out, os.Stdout)
	switch o.Output {
	case "", OutputText:
		return Text{Out: out}, nil
	case OutputJSON:
		return JSON{Out: out}, nil
	}
	return nil, fmt.Errorf("conformance: output %q is not known; use %q or %q", o.Output, OutputText, OutputJSON)
}

// Memory is a control plane on an in-memory store.
func Memory() Launched {
	return Launched{Name: StoreMemory}
}

// Embedded is a control plane on an etcd in this process.
func Embedded() Launched {
	return Launched{Name: "embedded etcd", NewStore: func() storage.Backend { return embedded.New(embedded.Config{}) }}
}

// External is a control plane on an etcd that somebody else runs. What it writes there,
// such as its system namespaces, stays.
func External(cfg external.Config) (Launched, error) {
	store, err := external.New(cfg)
	if err != nil {
		return Launched{}, err
	}
	return Launched{Name: "etcd " + store.String(), NewStore: func() storage.Backend { return store }, Borrowed: true}, nil
}
