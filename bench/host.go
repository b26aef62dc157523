package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/startup"
	"snowglobe.test/envtest"
	"snowglobe.test/internal/stock"
)

// host is what loads are run on.
type host struct {
	name    string
	on      func(*load) backend                                          // in this process, or nil for
	reached *reached                                                     // a server whose clients are in a process of their own
	read    func(context.Context, measure.Phase) (measure.Sample, error) // measures the process of the server
	apart   bool                                                         // read sees nothing of the clients
	control *envtest.ControlPlane                                        // ours; nil for another
}

// reached is how the clients of a load reach an API server.
type reached struct {
	servers []*rest.Config // clients are spread over them
	sampled *rest.Config   // of the first watcher; nil if its stages are not measured
}

// at is how the client of a number reaches its server.
func (r reached) at(number int) *rest.Config { return r.servers[number%len(r.servers)] }

// one is a server that clients reach in one way.
func one(config *rest.Config) *reached { return &reached{servers: []*rest.Config{config}} }

// cborGate is the feature gate without which a server speaks no CBOR.
const cborGate = "CBORServingAndStorage=true"

// onHost calls f with a host, which ends with f.
func (o WatchOptions) onHost(ctx context.Context, name string, f func(host) error) error {
	switch name {
	case transportTarget:
		return metered(host{name: name, on: onAPIServer(*one(o.Target))}, o.Target, f)
	case hostStock:
		return o.onStock(f)
	case hostPeer:
		return metered(host{name: name, on: onAPIServer(*one(o.Peer))}, o.Peer, f)
	case BaselineStore, BaselineCacher:
		return f(host{name: name, on: baselines[name], read: measure.ReadSelf})
	case BaselineHTTP2:
		return o.onBareServer(ctx, f)
	}
	return o.onControlPlane(ctx, name, f)
}

// metered calls f with a host that is another process, which is known by its metrics.
func metered(h host, config *rest.Config, f func(host) error) error {
	client, err := connectAll(config, jsonType)
	if err != nil {
		return err
	}
	defer client.close()
	h.read, h.apart = measure.ReadMetrics(client), true
	return f(h)
}

// stockTimeout bounds the start of each stock program.
const stockTimeout = time.Minute

// onStock calls f with a stock kube-apiserver on its etcd.
func (o WatchOptions) onStock(f func(host) error) (err error) {
	flags := map[string]string{}
	if o.Encoding == encodingCBOR {
		flags["feature-gates"] = cborGate
	}
	config, stop, err := stock.Programs{Folder: o.Against}.Run(stockTimeout, flags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return metered(host{name: hostStock, reached: one(config)}, config, f)
}

// onControlPlane calls f with a control plane of ours.
func (o WatchOptions) onControlPlane(ctx context.Context, transport string, f func(host) error) (err error) {
	launch := append(startup.OnStore(o.Store), envtest.WithReplicas(o.Servers))
	if o.Encoding == encodingCBOR {
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
	to := &reached{sampled: cp.Config(append(how, envtest.User(sampledUser, "system:masters"))...)}
	for _, server := range cp.Servers() {
		to.servers = append(to.servers, server.Config(append(how, envtest.User("snowglobe-bench", "system:masters"))...))
	}
	if transport == TransportTLS {
		h.apart, h.reached = true, to
	} else {
		h.on = onAPIServer(*to)
	}
	return f(h)
}

// run runs one load. Clients that can be are in another process than the server. It returns a
// result even if the error is ErrDelivery.
func (h host) run(ctx context.Context, opts WatchOptions) (*WatchLoad, error) {
	meter := measure.NewMeter(opts.Watchers, h.read)
	profiles := &measure.Profiler{Folder: opts.Profile, Name: h.name}
	load, err := h.load(ctx, opts, func(p measure.Phase) {
		meter.At(ctx, p)
		profiles.At(p)
	})
	if load != nil {
		var unknown error
		if load.Server, unknown = meter.Usage(h.apart, load.allDeliveries()); unknown != nil {
			fmt.Fprintf(opts.Progress, "%s: %v\n", load.Transport, unknown)
		}
		load.sampled = nil
	}
	return load, errors.Join(err, profiles.Stop(), profiles.Err)
}

func (h host) load(ctx context.Context, opts WatchOptions, comesTo func(measure.Phase)) (*WatchLoad, error) {
	if h.reached != nil {
		return runApart(ctx, opts, h.name, *h.reached, comesTo)
	}
	return runLoad(ctx, opts, h.name, h.on, comesTo)
}
