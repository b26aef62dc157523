package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"snowglobe.test/conformance/ledger"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/envtest/storage"
)

// A Source opens a cluster for a run.
type Source interface {
	// Open starts or finds the cluster. The caller closes it.
	Open(ctx context.Context) (*suite.Cluster, error)
	// String names the source for people.
	String() string
}

// Launched is a source that launches a control plane in this process.
type Launched struct {
	// Name for reports, like "memory".
	Name string
	// NewStore makes a store for one control plane. Nil means in memory.
	NewStore func() (storage.Backend, error)
	// Servers is how many API servers the target has, which the cases take turns to ask. Zero
	// means one. Those that cases launch have as many as the cases say.
	Servers int
	// Borrowed: the store is not ours, so no further control plane is launched on it.
	Borrowed bool
	// StartTimeout bounds the start of each control plane. Zero means envtest's default.
	StartTimeout time.Duration
	// Check says why the store can't be used any more. Nil means that it always can.
	Check func(ctx context.Context) error
}

// String implements Source.
func (p Launched) String() string { return p.Name }

// Open implements Source.
func (p Launched) Open(ctx context.Context) (*suite.Cluster, error) {
	cp, err := p.launch(ctx, envtest.WithReplicas(max(p.Servers, 1)))
	if err != nil {
		return nil, err
	}
	launcher := suite.NewLauncher(p.launch)
	cluster := &suite.Cluster{Name: p.Name, Config: cp.Config(), Release: envtest.Release(), Launcher: launcher}
	for _, server := range cp.Servers() {
		cluster.Servers = append(cluster.Servers, server.Config())
	}
	if p.Borrowed {
		cluster.Launcher = nil
	}
	cluster.Check = func(ctx context.Context) error { return p.check(ctx, cp) }
	cluster.Close = func(ctx context.Context) error {
		ctx = context.WithoutCancel(ctx)
		return errors.Join(launcher.Stop(ctx), cp.Stop(ctx), crash(cp))
	}
	return cluster, nil
}

// check says why a control plane can't be tested any more.
func (p Launched) check(ctx context.Context, cp *envtest.ControlPlane) error {
	if p.Check != nil {
		if err := p.Check(ctx); err != nil {
			return err
		}
	}
	return crash(cp)
}

// crashError is that of a control plane that ended by itself, which breaks every promise.
type crashError struct{ of *envtest.ControlPlane }

func (e crashError) Error() string { return fmt.Sprintf("the API server crashed: %v", e.of.Err()) }

// Unwrap implements the interface of errors.Is.
func (e crashError) Unwrap() []error { return []error{ErrFailed, e.of.Err()} }

func crash(cp *envtest.ControlPlane) error {
	if cp.Err() == nil {
		return nil
	}
	return crashError{cp}
}

func (p Launched) launch(ctx context.Context, opts ...envtest.Option) (*envtest.ControlPlane, error) {
	if p.NewStore != nil {
		store, err := p.NewStore()
		if err != nil {
			return nil, err
		}
		opts = append([]envtest.Option{envtest.WithStore(store)}, opts...)
	}
	cp, err := envtest.Launch(ctx, append([]envtest.Option{envtest.WithTimeouts(p.StartTimeout, 0)}, opts...)...)
	if err != nil {
		return nil, err
	}
	if err := awaitDefaultRoles(ctx, cp); err != nil {
		return nil, errors.Join(err, cp.Stop(context.WithoutCancel(ctx)))
	}
	return cp, nil
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

// Open implements Source. It asks the cluster once, for ten seconds at most.
func (k Kubeconfig) Open(ctx context.Context) (*suite.Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", k.Path)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", k.Path, err)
	}
	check := func(ctx context.Context) error { return k.probe(ctx, config) }
	if err := check(ctx); err != nil {
		return nil, err
	}
	book, err := ledger.New(config)
	if err != nil {
		return nil, err
	}
	return &suite.Cluster{Name: config.Host, Config: config, Release: k.Release, Ledger: book, Check: check, Close: func(ctx context.Context) error {
		left := book.Close(context.WithoutCancel(ctx))
		transport, err := rest.TransportFor(config)
		if err == nil {
			utilnet.CloseIdleConnectionsFor(transport)
		}
		return errors.Join(left, err)
	}}, nil
}
