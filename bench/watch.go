package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"snowglobe.test/bench/child"
	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/startup"
	"snowglobe.test/envtest"
)

// How watchers connect to the API server.
const (
	TransportProcess = "process" // function calls in the process, no connection
	TransportTLS     = "tls"     // HTTP/2 over TLS on loopback, a connection for each watcher
	TransportBoth    = "both"    // one after the other
	transportTarget  = "target"  // as the caller's configuration says
)

// What else a load can run on, beside ours in the same run.
const (
	hostStock = "stock" // kube-apiserver and etcd, over TLS
	hostPeer  = "peer"  // another cluster
)

// WatchOptions describe a load to measure watch fan-out with; zero is a small load.
type WatchOptions struct {
	// Watchers is how many clients watch; zero means 100.
	Watchers int
	// StreamsPerConnection is how many watches share a connection; zero means 1.
	StreamsPerConnection int
	// Rate is how many events a second are written. Zero means 100.
	Rate float64
	// Duration is how long events are written; zero means 10 s.
	Duration time.Duration
	// Writers is how many clients write, each to its own object; zero means 4, or as many as
	// Namespaces and Selectors need. Each waits for its answers, so few may not reach Rate: see
	// WatchLoad.Rate.
	Writers int
	// Resource is what is written and watched: "configmaps", "pods", "leases" or "widgets", a
	// custom resource, or "converted-widgets", one that a webhook converts from the version that is
	// stored. Empty means configmaps.
	Resource string
	// Namespaces is over how many namespaces objects and watchers are spread; zero means 1.
	Namespaces int
	// Selectors is over how many values of a label the objects of a namespace are spread. Each
	// watcher selects one, so that it gets one of so many events. Zero means 1: no selector.
	Selectors int
	// PayloadBytes is the size of the data in each object. Zero means 256.
	PayloadBytes int
	// Transport is TransportProcess, TransportTLS or TransportBoth; empty means both. One of Baselines
	// is that baseline alone.
	Transport string
	// Encoding is "json", "protobuf" or "cbor"; empty means json.
	Encoding string
	// Decode has each watcher decode its events, as client-go does. Otherwise it reads them as
	// bytes, so that what is measured is the server and not its clients.
	Decode bool
	// Servers is how many API servers on one store the clients are spread over; zero means 1.
	Servers int
	// Store is StoreMemory or StoreEmbedded; empty means StoreMemory.
	Store string
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
	// WarmUp is how long events are written before those that are measured. Zero means a tenth of
	// Duration, and a negative one none.
	WarmUp time.Duration
	// Slow is the share of watchers that take a tenth of a second over each event, from 0 to 1.
	Slow float64
	// Stalled is the share of watchers that read nothing until the others have all events.
	Stalled float64
	// Initial is how each watcher gets the objects that are there: InitialNone, InitialList or
	// InitialStream. Empty means InitialNone: it watches what comes after them.
	Initial string
	// Objects is how many objects there are beside those of the writers, of the same size.
	Objects int
	// Compress has watchers ask for what is compressed.
	Compress bool
	// Drain is how long the last event may take to all watchers; zero means 30 s.
	Drain time.Duration
	// Progress gets a line when a load begins and when it ends; it may be nil.
	Progress io.Writer `json:"-"`

	again bool // in another encoding, so that baselines that have none are left out
}

// encodings are those that a load can have its watches in: what a request accepts, and the media
// type of its answer.
var encodings = map[string]struct{ accepted, stream string }{
	"json":       {jsonType, jsonType},
	"protobuf":   {runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf},
	encodingCBOR: {runtime.ContentTypeCBOR, runtime.ContentTypeCBORSequence},
}

// noWarmUp is a WarmUp of none.
const noWarmUp = -1

const (
	encodingCBOR = "cbor"
	jsonType     = runtime.ContentTypeJSON
)

// Limits on the load: each watcher keeps a bit for each event.
const (
	maxServers    = 9
	maxWatchers   = 100_000
	maxDeliveries = 1 << 32 // half a GiB of bits
	maxPayload    = 1 << 20 // the size limit of a ConfigMap
)

func (o WatchOptions) withDefaults() WatchOptions {
	defaultTo(&o.Watchers, 100)
	defaultTo(&o.Rate, 100)
	defaultTo(&o.Duration, 10*time.Second)
	defaultTo(&o.WarmUp, o.Duration/10)
	defaultTo(&o.StreamsPerConnection, 1)
	defaultTo(&o.Namespaces, 1)
	defaultTo(&o.Selectors, 1)
	defaultTo(&o.Writers, max(4, o.Namespaces*o.Selectors))
	defaultTo(&o.Resource, "configmaps")
	defaultTo(&o.PayloadBytes, 256)
	defaultTo(&o.Encoding, "json")
	defaultTo(&o.Initial, InitialNone)
	defaultTo(&o.Drain, 30*time.Second)
	defaultTo(&o.Progress, io.Discard)
	if o.Against != "" || o.Peer != nil {
		defaultTo(&o.Rounds, 2)
	}
	defaultTo(&o.Rounds, 1)
	defaultTo(&o.Servers, 1)
	if o.Target == nil {
		defaultTo(&o.Transport, TransportBoth)
		defaultTo(&o.Store, startup.StoreMemory)
	}
	return o
}

func defaultTo[T comparable](option *T, value T) { *option = cmp.Or(*option, value) }

// events is how many events the writers write.
func (o WatchOptions) events() int { return int(o.Rate*o.Duration.Seconds() + 0.5) }

// receivers is how many watchers that are no laggards get an event, on average.
func (o WatchOptions) receivers() float64 {
	slow, stalled := o.laggards()
	return float64(o.Watchers-slow-stalled) / float64(o.Namespaces*o.Selectors)
}

// onBaselines reports whether baselines are measured too, or one of them alone.
func (o WatchOptions) onBaselines() bool {
	return o.Baselines || slices.Contains(Baselines, o.Transport)
}

func (o WatchOptions) validate() error {
	kind, err := kindOf(o.Resource)
	switch {
	case err != nil:
		return err
	case o.Watchers < 1 || o.Watchers > maxWatchers:
		return fmt.Errorf("%d watchers: give a number from 1 to %d", o.Watchers, maxWatchers)
	case o.StreamsPerConnection < 1 || o.Namespaces < 1 || o.Selectors < 1 || o.Writers < 1:
		return fmt.Errorf("%d streams on a connection, %d namespaces, %d selectors, %d writers: give at least 1 of each", o.StreamsPerConnection, o.Namespaces, o.Selectors, o.Writers)
	case o.Writers < o.Namespaces*o.Selectors:
		return fmt.Errorf("%d writers are too few for %d namespaces with %d selectors each: give at least %d", o.Writers, o.Namespaces, o.Selectors, o.Namespaces*o.Selectors)
	case o.Rate <= 0 || o.Duration <= 0 || o.Drain <= 0:
		return fmt.Errorf("a rate of %g events/s for %s, with %s to drain: all must be positive", o.Rate, o.Duration, o.Drain)
	case o.PayloadBytes < 0 || o.PayloadBytes > maxPayload:
		return fmt.Errorf("a payload of %d bytes: give a number from 1 to %d", o.PayloadBytes, maxPayload)
	case o.Rate*o.Duration.Seconds() < 0.5:
		return fmt.Errorf("%g events/s for %s is less than one event: raise the rate or the duration", o.Rate, o.Duration)
	case o.Rate*o.Duration.Seconds()*float64(o.Watchers) > maxDeliveries:
		return fmt.Errorf("%d watchers x %g events/s x %s is more than %d deliveries: lower one of them", o.Watchers, o.Rate, o.Duration, maxDeliveries)
	case encodings[o.Encoding].accepted == "":
		return fmt.Errorf("encoding %q is unknown; use json, protobuf or cbor", o.Encoding)
	case o.Encoding == encodingCBOR && o.Decode:
		return errors.New("client-go decodes no CBOR by default: decode json or protobuf, or read cbor without decoding")
	case o.Encoding == "protobuf" && !kind.protobuf:
		return fmt.Errorf("there is no protobuf of %s: use json or cbor", o.Resource)
	case o.onBaselines() && kind.Group == customGroup:
		return fmt.Errorf("there are no baselines of %s, whose objects have no type: leave out either", o.Resource)
	case o.Servers < 1 || o.Servers > maxServers:
		return fmt.Errorf("%d servers: give a number from 1 to %d", o.Servers, maxServers)
	case o.Servers > 1 && (o.Target != nil || o.Stages):
		return errors.New("several servers are ours, and stages are measured of one: leave out the cluster, the stages or the servers")
	case o.Rounds < 1:
		return fmt.Errorf("%d rounds: give at least 1", o.Rounds)
	case o.Target != nil && o.Transport+o.Store != "":
		return errors.New("an existing cluster has its own transport and store: leave out either these or the cluster")
	}
	if err := cmp.Or(o.validateLaggards(), o.validateInitial()); err != nil || o.Target != nil {
		return err
	}
	if known := append([]string{TransportProcess, TransportTLS, TransportBoth}, Baselines...); !slices.Contains(known, o.Transport) {
		return fmt.Errorf("transport %q is unknown; use one of %s", o.Transport, strings.Join(known, ", "))
	}
	return startup.CheckStore(o.Store)
}

// ErrDelivery says that a watcher missed an event, or saw one twice or out of order.
var ErrDelivery = errors.New("events were not delivered once each and in order")

// Watch measures the time from just before a client writes an object until each watcher
// has read the event, on a control plane per transport. With an error the report
// holds what was measured before it, and the failed load if that is ErrDelivery.
func Watch(ctx context.Context, opts WatchOptions) (WatchReport, error) {
	if ChildRequested() {
		return WatchReport{Machine: measure.ThisMachine(envtest.Release())}, child.ErrRequested
	}
	return watchHere(ctx, opts)
}

// watchHere is Watch in any process, a child too.
func watchHere(ctx context.Context, opts WatchOptions) (WatchReport, error) {
	opts = opts.withDefaults()
	report := WatchReport{Machine: measure.ThisMachine(envtest.Release())}
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

// withStock calls f with options that name the folder of the stock binaries, if there are to be any,
// and says which they are.
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
		hosts = append(hosts, hostStock)
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
