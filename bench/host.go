package bench

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
)

// host is an API server that loads are run on.
type host struct {
	transport string
	config    *rest.Config // as an admin
}

// onHost calls f with an API server: the target, or else a control plane that ends with f.
func onHost(ctx context.Context, opts WatchOptions, transport string, f func(host) error) (err error) {
	if opts.Target != nil {
		return f(host{transport, opts.Target})
	}
	launch := onStore(opts.Store)
	if opts.Encoding == encodingCBOR {
		launch = append(launch, envtest.WithFlags("--feature-gates=CBORServingAndStorage=true"))
	}
	if transport == TransportTLS {
		launch = append(launch, envtest.WithListener("127.0.0.1:0"))
	}
	cp, err := envtest.Launch(ctx, launch...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cp.Stop(context.WithoutCancel(ctx))) }()
	if transport == TransportTLS {
		return f(host{transport, cp.Config(envtest.User("snowglobe-bench", "system:masters"), envtest.Remote())})
	}
	return f(host{transport, cp.Config()})
}

// run runs one load. Clients that can be are in another process than the server. It returns a
// result even if the error is ErrDelivery.
func (h host) run(ctx context.Context, opts WatchOptions) (*WatchLoad, error) {
	meter := newMeter(readSelf)
	switch h.transport {
	case transportTarget:
		client, err := connect(h.config, jsonType)
		if err != nil {
			return nil, err
		}
		defer client.close()
		meter.read = scraper(client)
	case TransportTLS:
		return runApart(ctx, opts, h.transport, h.config, meter)
	}
	load, err := runLoad(ctx, opts, h.transport, h.config, func(p phase) { meter.at(ctx, p) })
	if load != nil {
		load.Server = meter.usage(h.transport == transportTarget, load, opts.Progress)
	}
	return load, err
}
