package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/linked"
	"snowglobe.test/envtest/serverflags"
	"snowglobe.test/envtest/session"
)

// controlPlane is the control plane of one connection. Its exported methods are those
// of the session, and may be called side by side.
type controlPlane struct {
	ctx  context.Context // ends with the connection
	pool *planes

	mu      sync.Mutex
	running *envtest.ControlPlane // nil before Start and after Stop
	test    string
	kind    string // in the pool
	altered bool   // by faults, so that no other test should get it
	since   int64  // Seq of the last record that an earlier test has left in the trace

	// kept is what the test has been given an ID of: a rule, a gate or a snapshot. The ID is the
	// index, from 1 on.
	kept []any
}

var errNotStarted = errors.New("the control plane is not started, or stopped already")

// Start gets a control plane.
func (c *controlPlane) Start(options *session.Options, started *session.Started) error {
	if options.Version != session.Version {
		return fmt.Errorf("the test speaks version %d of the protocol and this snowglobe version %d; build both from one release", options.Version, session.Version)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil {
		return errors.New("the control plane of this connection is started already")
	}
	opts, err := launchOptions(options)
	if err != nil {
		return err
	}
	kind, err := kindOf(options)
	if err != nil {
		return err
	}
	running, reused, err := c.pool.take(c.ctx, options.Test, kind, opts)
	if err != nil {
		return err
	}
	c.running, c.test, c.kind, c.altered = running, options.Test, kind, len(options.Faults) > 0
	if reused {
		c.since = running.Trace().Seq()
	}
	started.Release = linked.Release()
	started.Admin = credentials(running.Config(envtest.Remote()))
	return nil
}

func launchOptions(options *session.Options) ([]envtest.Option, error) {
	opts := []envtest.Option{
		envtest.WithCRDPaths(options.CRDPaths...), envtest.WithFaults(options.Faults...),
		envtest.WithTimeouts(options.StartTimeout, options.StopTimeout),
	}
	flags, err := flagsOf(options)
	if err != nil {
		return nil, err
	}
	opts = append(opts, flags...)
	if options.UnsettledWrites {
		opts = append(opts, envtest.WithSettledWrites(false))
	}
	if options.Seed != 0 {
		opts = append(opts, envtest.WithSeed(options.Seed))
	}
	for i, content := range options.CRDs {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := json.Unmarshal(content, crd); err != nil {
			return nil, fmt.Errorf("CRD %d: %w", i+1, err)
		}
		opts = append(opts, envtest.WithCRDs(crd))
	}
	return opts, nil
}

// flagsOf are the flags and the listener, which a test gives by WithFlags or by WithArguments.
func flagsOf(options *session.Options) ([]envtest.Option, error) {
	if len(options.Arguments) == 0 {
		return []envtest.Option{envtest.WithListener("localhost:0"), envtest.WithFlags(options.Flags...)}, nil
	}
	if len(options.Flags) > 0 {
		return nil, errors.New("WithFlags beside WithArguments: give them all as arguments")
	}
	process, err := serverflags.ParseProcess(options.Arguments)
	switch {
	case err != nil:
		return nil, fmt.Errorf("kube-apiserver flags: %w", err)
	case len(process.EtcdServers) > 0:
		return nil, errors.New("kube-apiserver flags: --etcd-servers can't be honoured: the store is in memory")
	}
	address := net.JoinHostPort(cmp.Or(process.BindAddress, "127.0.0.1"), strconv.Itoa(process.SecurePort))
	return []envtest.Option{envtest.WithListener(address), envtest.WithFlags(process.Flags...)}, nil
}

func credentials(config *rest.Config) session.Credentials {
	return session.Credentials{Host: config.Host, Authority: config.CAData, Certificate: config.CertData, Key: config.KeyData}
}

// AddUser makes credentials of a user.
func (c *controlPlane) AddUser(of *session.User, made *session.Credentials) error {
	return c.with(func(cp *envtest.ControlPlane) error {
		*made = credentials(cp.Config(envtest.User(of.Name, of.Groups...), envtest.Remote()))
		return nil
	})
}

// Stop gives the control plane back.
func (c *controlPlane) Stop(*session.None, *session.None) error { return c.giveBack(c.ctx) }

// keep remembers a rule, a gate or a snapshot that was made without an error, and gives it an ID.
func (c *controlPlane) keep(id *session.ID, something any, err error) error {
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, something)
	*id = session.ID(len(c.kept))
	return nil
}

// find calls use with what has an ID, if it is what is asked for.
func find[T any](c *controlPlane, id session.ID, use func(T) error) error {
	c.mu.Lock()
	var kept any
	if id > 0 && int(id) <= len(c.kept) {
		kept = c.kept[id-1]
	}
	c.mu.Unlock()
	found, ok := kept.(T)
	if !ok {
		return fmt.Errorf("%d is nothing of this control plane that can do that", id)
	}
	return use(found)
}

// with calls use with the control plane, if there is one.
func (c *controlPlane) with(use func(*envtest.ControlPlane) error) error {
	c.mu.Lock()
	running := c.running
	c.mu.Unlock()
	if running == nil {
		return errNotStarted
	}
	return use(running)
}

// giveBack lets the next test have the control plane, or stops it.
func (c *controlPlane) giveBack(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	cp := c.running
	if cp == nil {
		return nil
	}
	c.running = nil
	if c.altered || cp.Err() != nil {
		c.pool.tell("%s: done, and its control plane with it", c.test)
		return errors.Join(cp.Err(), cp.Stop(context.WithoutCancel(ctx)))
	}
	c.pool.tell("%s: done", c.test)
	return c.pool.put(ctx, c.test, c.kind, cp)
}
