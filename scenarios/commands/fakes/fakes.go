// Package fakes owns the commands about what API servers call: webhooks, issuers, plugins,
// kubelets, proxies and aggregated servers, each at a host that only they know. What these
// do is up to the fakes themselves, and to the answers that a script gives them.
package fakes

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"snowglobe.test/envtest"
	"snowglobe.test/envtest/memnet"
	"snowglobe.test/internal/nearest"
	"snowglobe.test/scenarios/commands/servers"
	"snowglobe.test/scenarios/engine"
)

// Fakes are those of one run.
type Fakes struct {
	run       *engine.Run
	byHost    map[string]*fake
	endpoints sync.Map // how to reach them, by host: API servers dial while the script goes on
}

// New returns the fakes for some servers, of which none runs.
func New(run *engine.Run, of *servers.Servers) *Fakes {
	f := &Fakes{run: run, byHost: map[string]*fake{}}
	of.OnOptions(func() []envtest.Option { return []envtest.Option{envtest.WithDialer(f.dialFake)} })
	return f
}

// fake runs a fake at a host.
func (f *Fakes) serve(kind, host string) error {
	served, err := fakeKindOf(kind)
	if err != nil {
		return err
	}
	if f.byHost[host] != nil {
		return fmt.Errorf("%w: there is a fake at %s already", engine.ErrUsage, host)
	}
	e := &endpoint{listener: memnet.Listen()}
	found, err := served.serve(fakePlace{e.listener, host, f.dialFake})
	if err != nil {
		return err
	}
	f.byHost[host] = found
	f.endpoints.Store(host, e)
	for extension, content := range found.files {
		if err := os.WriteFile(f.run.Path(host+extension), content, 0o600); err != nil {
			return err
		}
	}
	if found.ca != nil {
		f.run.Setenv("CA", base64.StdEncoding.EncodeToString(found.ca))
	}
	return nil
}

func (f *Fakes) fakeAt(host string) (*fake, error) {
	if found := f.byHost[host]; found != nil {
		return found, nil
	}
	hosts := slices.Sorted(maps.Keys(f.byHost))
	return nil, fmt.Errorf("%w: there is no fake at %q%s; run one with: fake KIND %s", engine.ErrUsage, host, nearest.DidYouMean(host, hosts), host)
}

// Close stops all fakes, in the order of their hosts.
func (f *Fakes) Close(ctx context.Context) error {
	var errs []error
	for _, host := range slices.Sorted(maps.Keys(f.byHost)) {
		for _, gate := range f.byHost[host].gates {
			gate.Open()
		}
		errs = append(errs, f.byHost[host].server.Stop(ctx))
	}
	clear(f.byHost)
	return errors.Join(errs...)
}
