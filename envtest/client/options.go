package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"snowglobe.test/envtest/client/internal/session"
)

// An Option says how a control plane differs from the default one.
type Option func(*config)

type config struct {
	options session.Options
	errs    []error
}

func newConfig(test string, opts []Option) (*session.Options, error) {
	c := &config{options: session.Options{Version: session.Version, Test: test}}
	for _, opt := range opts {
		opt(c)
	}
	return &c.options, errors.Join(c.errs...)
}

// WithFlags passes kube-apiserver flags, as envtest.WithFlags does. Files named in them are
// opened by another process, so their paths must be absolute.
func WithFlags(flags ...string) Option {
	return func(c *config) { c.options.Flags = append(c.options.Flags, flags...) }
}

// WithArguments starts the API server as a program with these arguments would, and with the
// defaults of the program: for what starts kube-apiserver, and is to have this one. It is refused
// where the program's arguments can't be honoured, and beside WithFlags.
func WithArguments(arguments ...string) Option {
	return func(c *config) { c.options.Arguments = append(c.options.Arguments, arguments...) }
}

// WithCRDs installs definitions, each a *CustomResourceDefinition of
// k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1, and waits until they are established.
func WithCRDs(crds ...runtime.Object) Option {
	return func(c *config) {
		for i, crd := range crds {
			content, err := json.Marshal(crd)
			if err != nil {
				c.errs = append(c.errs, fmt.Errorf("CRD %d: %w", i+1, err))
			}
			c.options.CRDs = append(c.options.CRDs, content)
		}
	}
}

// WithCRDPaths installs the definitions in YAML or JSON files, or directly in folders.
func WithCRDPaths(paths ...string) Option {
	return func(c *config) {
		for _, path := range paths {
			absolute, err := filepath.Abs(path)
			if err == nil {
				_, err = os.Stat(absolute)
			}
			if err != nil {
				c.errs = append(c.errs, fmt.Errorf("CRDs: %w", err))
			}
			c.options.CRDPaths = append(c.options.CRDPaths, absolute)
		}
	}
}

// WithFaults puts rules in force before the server starts, as envtest.WithFaults does. If a
// rule never fires, Stop returns an error.
func WithFaults(rules ...string) Option {
	return func(c *config) { c.options.Faults = append(c.options.Faults, rules...) }
}

// WithTimeouts bounds the start and the stop of the API server, as envtest.WithTimeouts does.
func WithTimeouts(start, stop time.Duration) Option {
	return func(c *config) { c.options.StartTimeout, c.options.StopTimeout = start, stop }
}

// WithSettledWrites says whether the answer to a write waits until the server's own watch caches and
// informers have the write, as envtest.WithSettledWrites does. It does by default.
func WithSettledWrites(settled bool) Option {
	return func(c *config) { c.options.UnsettledWrites = !settled }
}

// WithSeed decides what rules leave to chance.
func WithSeed(seed uint64) Option {
	return func(c *config) { c.options.Seed = seed }
}
