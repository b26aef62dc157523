package conformance

import (
	"context"
	"errors"
	"fmt"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage"
)

// Cluster is a running API server to test.
type Cluster struct {
	// Name identifies it for people.
	Name string
	// Config is for a user with all permissions.
	Config *rest.Config
	// Release is what /version must report, like "v1.37.1". Empty means unknown.
	Release string
	// Launch starts another control plane of the same kind, on a store of its own;
	// the caller stops it. Nil means that this is not possible.
	Launch func(ctx context.Context, opts ...envtest.Option) (*envtest.ControlPlane, error)
	// Wrap, if not nil, wraps the transport of this cluster and of those it launches.
	Wrap transport.WrapperFunc
	// Close releases what Open took. Nil means there is nothing to release.
	Close func(ctx context.Context) error
}

// wrap returns a copy of a configuration with the wrapper added.
func (c *Cluster) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if c.Wrap != nil {
		config.Wrap(c.Wrap)
	}
	return config
}

func (c *Cluster) close(ctx context.Context) error {
	if c.Close == nil {
		return nil
	}
	return c.Close(ctx)
}

// A Source opens a cluster for a run.
type Source interface {
	// Open starts or finds the cluster. The caller closes it.
	Open(ctx context.Context) (*Cluster, error)
	// String names the source for people.
	String() string
}

// Launched is a source that launches a control plane in this process.
type Launched struct {
	// Name for reports, like "memory".
	Name string
	// NewStore makes a store for one control plane. Nil means in memory.
	NewStore func() storage.Backend
	// Borrowed: the store is not ours, so no further control plane is launched on it.
	Borrowed bool
}

// String implements Source.
func (p Launched) String() string { return p.Name }

// Open implements Source.
func (p Launched) Open(ctx context.Context) (*Cluster, error) {
	cp, err := p.launch(ctx)
	if err != nil {
		return nil, err
	}
	cluster := &Cluster{Name: p.Name, Config: cp.Config(), Release: envtest.Release(), Close: func(ctx context.Context) error {
		return errors.Join(cp.Stop(context.WithoutCancel(ctx)), cp.Err())
	}}
	if !p.Borrowed {
		cluster.Launch = p.launch
	}
	return cluster, nil
}

func (p Launched) launch(ctx context.Context, opts ...envtest.Option) (*envtest.ControlPlane, error) {
	if p.NewStore != nil {
		opts = append([]envtest.Option{envtest.WithStore(p.NewStore())}, opts...)
	}
	return envtest.Launch(ctx, opts...)
}

// Kubeconfig is a source that finds a cluster by a kubeconfig file.
type Kubeconfig struct {
	// Path of the file; its current context is used.
	Path string
	// Release is what the cluster must report; empty if unknown.
	Release string
}

// String implements Source.
func (k Kubeconfig) String() string { return "kubeconfig " + k.Path }

// Open implements Source.
func (k Kubeconfig) Open(context.Context) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", k.Path)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", k.Path, err)
	}
	return &Cluster{Name: config.Host, Config: config, Release: k.Release, Close: func(context.Context) error {
		transport, err := rest.TransportFor(config)
		if err != nil {
			return err
		}
		utilnet.CloseIdleConnectionsFor(transport)
		return nil
	}}, nil
}
