package target

import (
	"context"
	"errors"
	"fmt"
	"time"

	"snowglobe.test/conformance/engine"
	"snowglobe.test/conformance/ledger"
	"snowglobe.test/conformance/suite"
	"snowglobe.test/envtest"
	"snowglobe.test/envtest/linked"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/cluster"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/storage/external"
)

// ControlPlane is a source that launches a control plane in this process.
type ControlPlane struct {
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

// Memory is a control plane on an in-memory store.
func Memory() ControlPlane { return ControlPlane{Name: "memory"} }

// Embedded is a control plane on an etcd in this process.
func Embedded(cfg embedded.Config) ControlPlane {
	return ControlPlane{Name: "embedded etcd", NewStore: func() (storage.Backend, error) {
		return embedded.New(cfg), nil
	}}
}

// Cluster is a control plane of three API servers on an etcd of three members in this process.
func Cluster(cfg cluster.Config) ControlPlane {
	return ControlPlane{Name: "cluster of three", Servers: 3,
		NewStore: func() (storage.Backend, error) { return cluster.New(cfg) }}
}

// External is a control plane on an etcd that the caller runs. What it writes there,
// such as its system namespaces, stays.
func External(cfg external.Config) (ControlPlane, error) {
	store, err := external.New(cfg)
	if err != nil {
		return ControlPlane{}, err
	}
	borrow := func() (storage.Backend, error) { return store, nil }
	return ControlPlane{Name: "etcd " + store.String(), NewStore: borrow, Borrowed: true, Check: store.Start}, nil
}

// String implements engine.Source.
func (p ControlPlane) String() string { return p.Name }

// Launched is a control plane that ends with the run.
type Launched struct {
	*suite.Cluster
	source ControlPlane
	cp     *envtest.ControlPlane
}

// Open implements engine.Source.
func (p ControlPlane) Open(ctx context.Context) (engine.Target[*suite.T], error) {
	cp, err := p.launch(ctx, envtest.WithReplicas(max(p.Servers, 1)))
	if err != nil {
		return nil, err
	}
	known := &suite.Cluster{Name: p.Name, Config: cp.Config(), Release: linked.Release()}
	if known.Ledger, err = ledger.New(known.Config); err != nil {
		return nil, errors.Join(err, cp.Stop(context.WithoutCancel(ctx)))
	}
	if !p.Borrowed {
		known.Launcher = suite.NewLauncher(p.launch)
	}
	for _, server := range cp.Servers() {
		known.Servers = append(known.Servers, server.Config())
	}
	Learn(ctx, known)
	return &Launched{known, p, cp}, nil
}

// Check implements engine.Target.
func (l *Launched) Check(ctx context.Context) error {
	if l.source.Check != nil {
		if err := l.source.Check(ctx); err != nil {
			return err
		}
	}
	return l.crash()
}

// Close implements engine.Target.
func (l *Launched) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var shared error
	if l.Launcher != nil {
		shared = l.Launcher.Stop(ctx)
	}
	return errors.Join(shared, l.cp.Stop(ctx), l.crash())
}

// crashError is the error of a control plane that ended by itself. It counts as a failure, because
// a crash breaks every promise.
type crashError struct{ of *envtest.ControlPlane }

func (e crashError) Error() string { return fmt.Sprintf("the API server crashed: %v", e.of.Err()) }

// Unwrap implements the interface of errors.Is.
func (e crashError) Unwrap() []error { return []error{engine.ErrFailed, e.of.Err()} }

func (l *Launched) crash() error {
	if l.cp.Err() == nil {
		return nil
	}
	return crashError{l.cp}
}

func (p ControlPlane) launch(ctx context.Context, opts ...envtest.Option) (*envtest.ControlPlane, error) {
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
