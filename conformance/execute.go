package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/reports"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/conformance/target"
	"snowglobe.test/envtest/storage/cluster"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/storage/external"
	"snowglobe.test/internal/outfile"
)

// Options are the options of one run from the command line.
type Options struct {
	// Store the control plane is launched on: "memory" (the default), "embedded", "cluster",
	// or the URLs of an etcd, separated by commas.
	Store string
	// Kubeconfig names an existing cluster to test instead of launching one.
	Kubeconfig string
	// Stock names a folder with a kube-apiserver and an etcd to run and test.
	Stock string
	// StartTimeout bounds the start of the control plane and of its store; an external
	// etcd gets a third of it for its first answer. Zero means their defaults.
	StartTimeout time.Duration
	// VirtualTime runs the control plane and the cases in virtual time, on memory.
	VirtualTime bool
	// Release is what the cluster of the kubeconfig must report, like "v1.37.1", and the one
	// whose promises it is held to; empty if what it reports is to be believed.
	Release string
	// Selection says which cases to run.
	Selection engine.Selection
	// Parallel is how many cases run at a time; 0 means one. In virtual time it is always one.
	Parallel int
	// Seed decides a random order of the cases; 0 means the order of the list.
	Seed int64
	// JUnit is the file for a JUnit report; empty means none.
	JUnit string
	// HTML is the file for a page for people; empty means none.
	HTML string
	// Output is "text" (the default) or "json".
	Output string
	// Out receives the output; nil means standard output.
	Out io.Writer
	// Notices receives what will be made on the cluster of a kubeconfig, before that; nil means
	// standard error.
	Notices io.Writer
}

// The values of Options.Store that are not URLs.
const (
	StoreMemory   = "memory"
	StoreEmbedded = "embedded"
	StoreCluster  = "cluster"
)

// Execute runs the cases. The error wraps engine.ErrFailed if a promise is broken; other errors say
// why cases could not run.
func Execute(ctx context.Context, opts Options) (engine.Report, error) {
	source, err := opts.source()
	if err != nil {
		return engine.Report{}, err
	}
	cases, err := engine.Select(Cases(), opts.Selection)
	if err != nil {
		return engine.Report{}, err
	}
	reporter, err := reports.For(opts.Output, opts.Out)
	if err != nil {
		return engine.Report{}, err
	}
	if err := opts.createFiles(); err != nil {
		return engine.Report{}, err
	}
	start, parallel := engine.Run[*suite.T], max(opts.Parallel, 1)
	if opts.VirtualTime {
		start, parallel = engine.Simulate[*suite.T], 1
	}
	told, err := start(ctx, source, cases, reporter, engine.Parallel(parallel), engine.Shuffled(opts.Seed),
		engine.Announced(cmp.Or[io.Writer](opts.Notices, os.Stderr)))
	errs := []error{err, told.Err(), told.Unjudged()}
	if opts.JUnit != "" {
		errs = append(errs, reports.WriteJUnit(opts.JUnit, told))
	}
	if opts.HTML != "" {
		errs = append(errs, reports.WriteHTMLFile(opts.HTML, told))
	}
	return told, errors.Join(errs...)
}

// createFiles makes sure, before anything starts, that the reports can be written. What an
// earlier run has written stays until then.
func (o Options) createFiles() error {
	if err := outfile.Try(o.JUnit, o.HTML); err != nil {
		return fmt.Errorf("conformance: report: %w", err)
	}
	return nil
}

func (o Options) source() (engine.Source[*suite.T], error) {
	switch {
	case o.Kubeconfig != "" && o.Store != "":
		return nil, errors.New("conformance: both a store and a kubeconfig are given; a kubeconfig names a cluster " +
			"that has its store")
	case o.Stock != "" && o.Store+o.Kubeconfig != "":
		return nil, errors.New("conformance: beside a folder of stock programs, a store or a kubeconfig is given; " +
			"the programs are a target of their own")
	case o.Stock != "" && o.VirtualTime:
		return nil, errors.New("conformance: stock programs live in real time; leave virtual time out")
	case o.Kubeconfig != "" && o.VirtualTime:
		return nil, errors.New("conformance: a cluster behind a kubeconfig lives in real time; leave virtual time out")
	case o.Release != "" && o.Kubeconfig == "":
		return nil, errors.New("conformance: a release is for the cluster of a kubeconfig; what is launched here is " +
			"of the linked one")
	case o.Kubeconfig != "":
		if _, err := version.ParseGeneric(o.Release); o.Release != "" && err != nil {
			return nil, fmt.Errorf("conformance: %q is not a release; write one like v1.37.1", o.Release)
		}
		if _, err := os.Stat(o.Kubeconfig); err != nil {
			return nil, fmt.Errorf("conformance: kubeconfig: %w", err)
		}
		return target.Kubeconfig{Path: o.Kubeconfig, Release: o.Release}, nil
	case o.Stock != "":
		return target.Stock{Folder: o.Stock, StartTimeout: o.StartTimeout}, nil
	case o.Store == "" || o.Store == StoreMemory:
		return o.patient(target.Memory(), nil)
	case o.VirtualTime:
		return nil, fmt.Errorf("conformance: store %q uses sockets, which do not work in virtual time; use %q", o.Store,
			StoreMemory)
	case o.Store == StoreEmbedded:
		return o.patient(target.Embedded(embedded.Config{StartTimeout: o.StartTimeout}), nil)
	case o.Store == StoreCluster:
		return o.patient(target.Cluster(cluster.Config{StartTimeout: o.StartTimeout}), nil)
	case strings.Contains(o.Store, "://"):
		return o.patient(target.External(external.Config{URLs: strings.Split(o.Store, ","),
			DialTimeout: o.StartTimeout / 3}))
	}
	return nil, fmt.Errorf("conformance: store %q is not known; use %q, %q, %q or the URL of an etcd, like "+
		"http://127.0.0.1:2379",
		o.Store, StoreMemory, StoreEmbedded, StoreCluster)
}

// patient gives a control plane its time to start.
func (o Options) patient(source target.ControlPlane, err error) (engine.Source[*suite.T], error) {
	source.StartTimeout = o.StartTimeout
	return source, err
}
