package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"snowglobe.test/bench/child"
	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/results"
	"snowglobe.test/envtest/linked"
)

// What a load can run on, as WatchOptions.Transport says.
const (
	TransportProcess = load.TransportProcess
	TransportTLS     = load.TransportTLS
	TransportBoth    = "both" // one after the other
	BaselineStore    = load.BaselineStore
	BaselineCacher   = load.BaselineCacher
	BaselineHTTP2    = load.BaselineHTTP2
)

// What else a load runs on.
const (
	transportTarget = "target" // a cluster, as the caller's configuration says
	hostPeer        = "peer"   // another cluster, beside ours
)

// WatchOptions describe a load to measure watch fan-out with, and what it is run on; zero is a small
// load on control planes of ours.
type WatchOptions struct {
	load.Shape
	load.Pace

	// Transport is TransportProcess, TransportTLS or TransportBoth; empty means both. If it is one of
	// Baselines, only that baseline is measured.
	Transport string
	// Target is an existing cluster to measure, in a namespace that the load
	// creates and deletes. Transport and Store must then be empty.
	Target *rest.Config `json:"-"`
	// Against is a folder with kube-apiserver and etcd, which are run and measured in turn with
	// ours, or measure.AgainstStock.
	Against string
	// Peer is an existing cluster that is measured in turn with ours.
	Peer *rest.Config `json:"-"`
	// Baselines has each of Baselines measured too.
	Baselines bool
	// Stages has each load run again, to measure how long its events took from one point of their
	// way to the next, on servers of ours.
	Stages bool
	// Profile is a folder for profiles of this process while each load is delivered, named by what
	// it ran on; a later load replaces those of an earlier one. Empty means none.
	Profile string
	// Rounds is how often all is measured, in turn. Zero means once, or twice if there is a peer.
	Rounds int
	// Progress gets a line when a load begins and when it ends; it may be nil.
	Progress io.Writer `json:"-"`

	again bool // the load was measured in another encoding before: leave out the baselines without one
}

func (o WatchOptions) withDefaults() WatchOptions {
	load := o.load().WithDefaults()
	o.Shape, o.Pace, o.Progress = load.Shape, load.Pace, load.Progress
	if o.Against != "" || o.Peer != nil {
		o.Rounds = cmp.Or(o.Rounds, 2)
	}
	o.Rounds = cmp.Or(o.Rounds, 1)
	if o.Target == nil {
		o.Transport = cmp.Or(o.Transport, TransportBoth)
		o.Store = cmp.Or(o.Store, measure.StoreMemory)
	}
	return o
}

// load is the load alone.
func (o WatchOptions) load() load.Options {
	return load.Options{Shape: o.Shape, Pace: o.Pace, Progress: o.Progress}
}

func (o WatchOptions) validate() error {
	if err := cmp.Or(o.load().Validate(), o.validateBaselines()); err != nil {
		return err
	}
	switch {
	case o.Servers > 1 && (o.Target != nil || o.Stages):
		return errors.New("several servers are ours, and stages are measured of one: " +
			"leave out the cluster, the stages or the servers")
	case o.Rounds < 1:
		return fmt.Errorf("%d rounds: give at least 1", o.Rounds)
	case o.Target != nil && o.Transport+o.Store != "":
		return errors.New("an existing cluster has its own transport and store: " +
			"leave out either these or the cluster")
	case o.Target != nil:
		return nil
	}
	if known := append([]string{TransportProcess, TransportTLS, TransportBoth}, Baselines...); !slices.Contains(known,
		o.Transport) {
		return fmt.Errorf("transport %q is unknown; use one of %s", o.Transport, strings.Join(known, ", "))
	}
	return measure.CheckStore(o.Store)
}

// validateBaselines returns an error for what baselines can't do, if they are measured too.
func (o WatchOptions) validateBaselines() error {
	kind, err := load.KindOf(o.Resource)
	switch {
	case !o.Baselines && !slices.Contains(Baselines, o.Transport):
		return nil
	case err != nil:
		return err
	case kind.Custom():
		return fmt.Errorf("there are no baselines of %s, whose objects have no type: leave out either", o.Resource)
	case o.Slow+o.Stalled > 0:
		return errors.New("baselines end no watch of a client that cannot keep up: " +
			"leave out either baselines, or slow and stalled watchers")
	case o.Initial != load.InitialNone || o.Objects > 0:
		return errors.New("baselines know nothing of initial objects: leave out either")
	}
	return nil
}

// ErrDelivery says that a watcher missed an event, or saw one twice or out of order.
var ErrDelivery = load.ErrDelivery

// Watch measures the time from just before a client writes an object until each watcher
// has read the event, on a control plane per transport. With an error the report
// holds what was measured before it, and the failed load if that is ErrDelivery.
func Watch(ctx context.Context, opts WatchOptions) (results.WatchReport, error) {
	if ChildRequested() {
		return results.WatchReport{Machine: measure.ThisMachine(linked.Release())}, child.ErrRequested
	}
	return watchHere(ctx, opts)
}

// watchHere is Watch in any process, a child too.
func watchHere(ctx context.Context, opts WatchOptions) (results.WatchReport, error) {
	opts = opts.withDefaults()
	report := results.WatchReport{Machine: measure.ThisMachine(linked.Release())}
	if err := opts.validate(); err != nil {
		return report, fmt.Errorf("bench watch: %w", err)
	}
	err := opts.withStock(ctx, &report.Against, func(opts WatchOptions) error {
		return opts.inTurn(ctx, func(h host, round int) error {
			load, err := h.run(ctx, opts)
			if load != nil {
				load.Round = round
				if err == nil {
					load.Stages, err = h.stages(ctx, opts)
				}
				report.Loads = append(report.Loads, *load)
			}
			return err
		})
	})
	if err != nil {
		return report, fmt.Errorf("bench watch: %w", err)
	}
	return report, nil
}

// withStock calls f with options that name the folder of the stock binaries, and sets *used to these.
// If no stock binaries are asked for, it only calls f.
func (o WatchOptions) withStock(ctx context.Context, used **measure.Binaries, f func(WatchOptions) error) error {
	if o.Against == "" {
		return f(o)
	}
	return measure.WithBinaries(ctx, o.Against, o.Progress, func(binaries measure.Binaries) error {
		*used, o.Against = &binaries, binaries.Folder
		return f(o)
	})
}

// inTurn calls f with each host of each round, counted from 1.
func (o WatchOptions) inTurn(ctx context.Context, f func(h host, round int) error) error {
	for round := range o.Rounds {
		for _, name := range o.hosts() {
			if err := o.onHost(ctx, name, func(h host) error { return f(h, round+1) }); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// hosts are what the load runs on, in this order.
func (o WatchOptions) hosts() []string {
	hosts := o.transports()
	if o.Against != "" {
		hosts = append(hosts, load.Stock)
	}
	if o.Peer != nil {
		hosts = append(hosts, hostPeer)
	}
	if o.Baselines && o.again {
		hosts = append(hosts, BaselineHTTP2)
	} else if o.Baselines {
		hosts = append(hosts, Baselines...)
	}
	return hosts
}

func (o WatchOptions) transports() []string {
	switch {
	case o.Target != nil:
		return []string{transportTarget}
	case o.Transport == TransportBoth:
		return []string{TransportProcess, TransportTLS}
	default:
		return []string{o.Transport}
	}
}
