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

	"snowglobe.test/envtest/storage"
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
	Selection Selection
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

// The values of Options.Store that are not URLs, and of Options.Output.
const (
	StoreMemory   = "memory"
	StoreEmbedded = "embedded"
	StoreCluster  = "cluster"
	OutputText    = "text"
	OutputJSON    = "json"
	// OutputMarkdown is for List only.
	OutputMarkdown = "markdown"
)

// Execute runs the cases. The error wraps ErrFailed if a promise is broken; other errors say
// why cases could not run.
func Execute(ctx context.Context, opts Options) (Report, error) {
	source, err := opts.source()
	if err != nil {
		return Report{}, err
	}
	cases, err := Select(Cases(), opts.Selection)
	if err != nil {
		return Report{}, err
	}
	reporter, err := opts.reporter()
	if err != nil {
		return Report{}, err
	}
	if err := opts.createFiles(); err != nil {
		return Report{}, err
	}
	start, parallel := Run, max(opts.Parallel, 1)
	if opts.VirtualTime {
		start, parallel = Simulate, 1
	}
	report, err := start(ctx, source, cases, reporter, Parallel(parallel), Shuffled(opts.Seed), Announced(cmp.Or[io.Writer](opts.Notices, os.Stderr)))
	errs := []error{err, report.Err(), report.unjudged()}
	if opts.JUnit != "" {
		errs = append(errs, report.WriteJUnit(opts.JUnit))
	}
	if opts.HTML != "" {
		errs = append(errs, WriteHTMLFile(opts.HTML, report))
	}
	return report, errors.Join(errs...)
}

// createFiles makes sure, before anything starts, that the reports can be written. What an
// earlier run has written stays until then.
func (o Options) createFiles() error {
	if err := outfile.Try(o.JUnit, o.HTML); err != nil {
		return fmt.Errorf("conformance: report: %w", err)
	}
	return nil
}

func (o Options) source() (Source, error) {
	switch {
	case o.Kubeconfig != "" && o.Store != "":
		return nil, errors.New("conformance: both a store and a kubeconfig are given; a kubeconfig names a cluster that has its store")
	case o.Stock != "" && o.Store+o.Kubeconfig != "":
		return nil, errors.New("conformance: beside a folder of stock programs, a store or a kubeconfig is given; the programs are a target of their own")
	case o.Stock != "" && o.VirtualTime:
		return nil, errors.New("conformance: stock programs live in real time; leave virtual time out")
	case o.Kubeconfig != "" && o.VirtualTime:
		return nil, errors.New("conformance: a cluster behind a kubeconfig lives in real time; leave virtual time out")
	case o.Release != "" && o.Kubeconfig == "":
		return nil, errors.New("conformance: a release is for the cluster of a kubeconfig; what is launched here is of the linked one")
	case o.Kubeconfig != "":
		if _, err := version.ParseGeneric(o.Release); o.Release != "" && err != nil {
			return nil, fmt.Errorf("conformance: %q is not a release; write one like v1.37.1", o.Release)
		}
		if _, err := os.Stat(o.Kubeconfig); err != nil {
			return nil, fmt.Errorf("conformance: kubeconfig: %w", err)
		}
		return Kubeconfig{Path: o.Kubeconfig, Release: o.Release}, nil
	case o.Stock != "":
		return Stock{Folder: o.Stock, StartTimeout: o.StartTimeout}, nil
	case o.Store == "" || o.Store == StoreMemory:
		return o.patient(Memory(), nil)
	case o.VirtualTime:
		return nil, fmt.Errorf("conformance: store %q uses sockets, which do not work in virtual time; use %q", o.Store, StoreMemory)
	case o.Store == StoreEmbedded:
		return o.patient(Embedded(embedded.Config{StartTimeout: o.StartTimeout}), nil)
	case o.Store == StoreCluster:
		return o.patient(Cluster(cluster.Config{StartTimeout: o.StartTimeout}), nil)
	case strings.Contains(o.Store, "://"):
		return o.patient(External(external.Config{URLs: strings.Split(o.Store, ","), DialTimeout: o.StartTimeout / 3}))
	}
	return nil, fmt.Errorf("conformance: store %q is not known; use %q, %q, %q or the URL of an etcd, like http://127.0.0.1:2379",
		o.Store, StoreMemory, StoreEmbedded, StoreCluster)
}

// patient gives a control plane its time to start.
func (o Options) patient(source Launched, err error) (Source, error) {
	source.StartTimeout = o.StartTimeout
	return source, err
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
func Embedded(cfg embedded.Config) Launched {
	return Launched{Name: "embedded etcd", NewStore: func() (storage.Backend, error) { return embedded.New(cfg), nil }}
}

// Cluster is a control plane of three API servers on an etcd of three members in this process.
func Cluster(cfg cluster.Config) Launched {
	return Launched{Name: "cluster of three", Servers: 3, NewStore: func() (storage.Backend, error) { return cluster.New(cfg) }}
}

// External is a control plane on an etcd that the caller runs. What it writes there,
// such as its system namespaces, stays.
func External(cfg external.Config) (Launched, error) {
	store, err := external.New(cfg)
	if err != nil {
		return Launched{}, err
	}
	return Launched{Name: "etcd " + store.String(), NewStore: func() (storage.Backend, error) { return store, nil }, Borrowed: true, Check: store.Start}, nil
}
