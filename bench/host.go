package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"snowglobe.test/bench/baseline"
	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/results"
	"snowglobe.test/bench/startup"
	"snowglobe.test/envtest"
	"snowglobe.test/internal/stock"
)

// Baselines are the names of all baselines.
var Baselines = []string{BaselineStore, BaselineCacher, BaselineHTTP2}

// onPart are the backends of the baselines in this process.
var onPart = map[string]func(*load.Load) load.Backend{BaselineStore: baseline.Store, BaselineCacher: baseline.Cacher}

// host is what loads are run on.
type host struct {
	name string
	on   func(*load.Load) load.Backend // runs the clients in this process; nil if reached is set
	// reached are servers whose clients run in a process of their own; nil if on is set.
	reached *load.Servers
	read    func(context.Context, measure.Phase) (measure.Sample, error) // measures the process of the server
	apart   bool                                                         // read leaves out the clients
	control *envtest.ControlPlane                                        // nil if it is not ours
}

// one is a single server, which all clients reach with the same configuration.
func one(config *rest.Config) *load.Servers { return &load.Servers{Configs: []*rest.Config{config}} }

// cborGate is the feature gate without which a server speaks no CBOR.
const cborGate = "CBORServingAndStorage=true"

// onHost calls f with a host, which ends with f.
func (o WatchOptions) onHost(ctx context.Context, name string, f func(host) error) error {
	switch name {
	case transportTarget:
		return metered(host{name: name, on: load.OnAPIServer(*one(o.Target))}, o.Target, f)
	case load.Stock:
		return o.onStock(f)
	case hostPeer:
		return metered(host{name: name, on: load.OnAPIServer(*one(o.Peer))}, o.Peer, f)
	case BaselineStore, BaselineCacher:
		return f(host{name: name, on: onPart[name], read: measure.ReadSelf})
	case BaselineHTTP2:
		return o.onBareServer(ctx, f)
	}
	return o.onControlPlane(ctx, name, f)
}

// metered calls f with a host in another process, whose usage is read from its metrics.
func metered(h host, config *rest.Config, f func(host) error) error {
	client, err := load.Connect(config)
	if err != nil {
		return err
	}
	defer client.Close()
	h.read, h.apart = measure.ReadMetrics(client), true
	return f(h)
}

// stockTimeout bounds the start of each stock program.
const stockTimeout = time.Minute

// onStock calls f with a stock kube-apiserver on its etcd.
func (o WatchOptions) onStock(f func(host) error) (err error) {
	flags := map[string]string{}
	if o.Encoding == load.EncodingCBOR {
		flags["feature-gates"] = cborGate
	}
	config, stop, err := stock.Programs{Folder: o.Against}.Run(stockTimeout, flags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return metered(host{name: load.Stock, reached: one(config)}, config, f)
}

// onControlPlane calls f with a control plane of ours.
func (o WatchOptions) onControlPlane(ctx context.Context, transport string, f func(host) error) (err error) {
	launch := append(startup.OnStore(o.Store), envtest.WithReplicas(o.Servers))
	if o.Encoding == load.EncodingCBOR {
		launch = append(launch, envtest.WithFlags("--feature-gates="+cborGate))
	}
	if transport == TransportTLS {
		launch = append(launch, envtest.WithListener("127.0.0.1:0"))
	}
	cp, err := envtest.Launch(ctx, launch...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Stop(context.WithoutCancel(ctx))) }()
	h := host{name: transport, read: measure.ReadSelf, control: cp}
	var how []envtest.ConfigOption
	if transport == TransportTLS {
		how = append(how, envtest.Remote())
	}
	to := &load.Servers{Sampled: cp.Config(append(how, envtest.User(sampledUser, "system:masters"))...)}
	for _, server := range cp.Servers() {
		to.Configs = append(to.Configs,
			server.Config(append(how, envtest.User("snowglobe-bench", "system:masters"))...))
	}
	if transport == TransportTLS {
		h.apart, h.reached = true, to
	} else {
		h.on = load.OnAPIServer(*to)
	}
	return f(h)
}

// onBareServer calls f with a bare server, whose events are like those that an API server sends for
// the same load.
func (o WatchOptions) onBareServer(ctx context.Context, f func(host) error) (err error) {
	var event []byte
	err = o.onControlPlane(ctx, TransportProcess, func(h host) (err error) {
		event, err = load.CaptureEvent(ctx, o.load(), h.on)
		return err
	})
	if err != nil {
		return fmt.Errorf("read an event of an API server: %w", err)
	}
	config, stop, err := baseline.ServeHTTP2(event, load.StreamType(o.Encoding))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return f(host{name: BaselineHTTP2, reached: one(config), read: measure.ReadSelf, apart: true})
}

// run runs one load. The clients are in another process than the server if the host can be reached
// from there. It returns a result even if the error is ErrDelivery.
func (h host) run(ctx context.Context, opts WatchOptions) (*results.WatchLoad, error) {
	meter := measure.NewMeter(opts.Watchers, h.read)
	profiles := &measure.Profiler{Folder: opts.Profile, Name: h.name}
	load, err := h.load(ctx, opts, func(p measure.Phase) {
		meter.At(ctx, p)
		profiles.At(p)
	})
	if load != nil {
		var unknown error
		if load.Server, unknown = meter.Usage(h.apart, load.AllDeliveries()); unknown != nil {
			fmt.Fprintf(opts.Progress, "%s: %v\n", load.Transport, unknown)
		}
		load.Sampled = nil
	}
	return load, errors.Join(err, profiles.Stop(), profiles.Err)
}

func (h host) load(ctx context.Context, opts WatchOptions, comesTo func(measure.Phase)) (*results.WatchLoad, error) {
	if h.reached != nil {
		return load.RunApart(ctx, opts.load(), h.name, *h.reached, comesTo)
	}
	return load.Run(ctx, opts.load(), h.name, h.on, comesTo)
}
