package envtest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"snowglobe.test/envtest/pool"
	"snowglobe.test/envtest/sim"
	"snowglobe.test/envtest/virtualtime"
)

// poolKind says what is equal for control planes that can stand for one another; empty if no other can
// stand for this one.
func (c *config) poolKind() (string, error) {
	if !pool.Open() || virtualtime.Virtual() || sim.Enabled() || slices.ContainsFunc(c.flags, namesFile) {
		return "", nil
	}
	other := *c // what the kind does not say, which must be nothing
	other.flags, other.crds, other.crdPaths, other.cacheWindows = nil, nil, nil, nil
	other.timeouts, other.replicas, other.withoutHousekeeping, other.settledWrites = timeouts{}, 0, false, nil
	other.errs = nil // there are none
	if !reflect.ValueOf(other).IsZero() {
		return "", nil
	}
	crds, _, err := loadCRDs(c)
	if err != nil {
		return "", err
	}
	definitions, err := json.Marshal(crds)
	if err != nil {
		return "", err
	}
	settled := "default"
	if c.settledWrites != nil {
		settled = fmt.Sprint(*c.settledWrites)
	}
	return fmt.Sprintf("flags %q, CRDs %x, windows %v, timeouts %v, replicas %d, without housekeeping %t, settled %s",
		c.flags, sha256.Sum256(definitions), c.cacheWindows, c.timeouts, c.replicas, c.withoutHousekeeping, settled), nil
}

// namesFile reports whether the value of a flag, after "=" or a word of its own, is a file, which may have
// changed since.
func namesFile(flag string) bool {
	_, value, ok := strings.Cut(flag, "=")
	if !ok {
		value = flag
	}
	_, err := os.Stat(value)
	return err == nil
}

// takeParked returns a control plane of a kind that was parked, nil if there is none. One that has crashed
// since is stopped.
func takeParked(t testing.TB, kind string) *ControlPlane {
	for {
		parked, ok := pool.Take(kind).(*ControlPlane)
		if !ok || parked.reusable() {
			return parked
		}
		t.Logf("%s is not used again: %v", parked.name, errors.Join(parked.allRun(), parked.Err(), parked.Stop(t.Context())))
	}
}

// giveBack ends what a test has of a control plane: it is parked, or stopped.
func (cp *ControlPlane) giveBack(ctx context.Context, t testing.TB) error {
	if cp.kind == "" || t.Failed() || !cp.reusable() {
		return errors.Join(cp.Stop(ctx), crashed(cp))
	}
	clearing, cancel := cp.cfg.timeouts.boundStop(ctx)
	defer cancel()
	if err := cp.clear(clearing); err != nil {
		t.Logf("the control plane is not used again: %v", err)
		return errors.Join(cp.Stop(ctx), crashed(cp))
	}
	return pool.Park(ctx, cp.kind, cp)
}

// reusable reports whether clear can undo what a test has done.
func (cp *ControlPlane) reusable() bool {
	for _, server := range cp.servers {
		if server.boots != 1 {
			return false
		}
	}
	fine := cp.stopping.Err() == nil && cp.Err() == nil && cp.allRun() == nil
	return fine && cp.unfired() == nil && !cp.componentNames.any()
}

// clear takes away what a test has left.
func (cp *ControlPlane) clear(ctx context.Context) error {
	cp.faults.Clear()
	cp.users.renew()
	if err := cp.webhooks.Clear(ctx); err != nil {
		return err
	}
	for _, server := range cp.servers {
		if err := server.current.Load().endpoint.Disconnect(ctx); err != nil {
			return err
		}
	}
	if err := cp.Reset(ctx); err != nil {
		return err
	}
	cp.clients.Store(0)
	cp.recorder.Clear()
	for _, server := range cp.servers {
		server.log.Clear()
	}
	return nil
}
