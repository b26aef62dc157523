package chain

import (
	"context"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"snowglobe.test/envtest/storage"
)

// Chains are all the chains that run on one store.
type Chains []*Chain

// Restore brings the contents of the store back below the running chains, and
// waits until all of them have taken notice. Every watch cache has then seen the
// changes of its resource, the handler of custom resources those of the CRDs, and
// the aggregator has an APIService for every CRD and for no other. Informers of
// clients, and other informers of the server, hear of it as they always do.
//
// The aggregator makes and deletes the APIServices of CRDs by itself, at any
// moment that it sees one without the other. So they are left to it at first,
// and brought back to what they were when it has nothing more to do.
func (all Chains) Restore(ctx context.Context, to storage.Snapshot) ([]storage.Change, error) {
	c := all[0]
	store, ok := c.cfg.Store.(storage.Snapshotter)
	if !ok {
		return nil, fmt.Errorf("store %s keeps no snapshots", c.cfg.Store)
	}
	select {
	case c.restoring <- struct{}{}: // a channel, because time must pass while others wait
		defer func() { <-c.restoring }()
	case <-ctx.Done():
		return nil, fmt.Errorf("another restore has not ended: %w", context.Cause(ctx))
	}
	if err := all.settleCRDs(ctx); err != nil {
		return nil, err
	}
	var left []apiService
	changes, err := store.Restore(ctx, to, func(key string, have, want *mvccpb.KeyValue) bool {
		if c.keeps(key, have, want) {
			return true
		}
		name, ok := strings.CutPrefix(key, c.folder(apiServiceFolder))
		if ok && (followsCRDs(have.GetValue()) || followsCRDs(want.GetValue())) {
			left = append(left, apiService{name: name, key: key, wanted: want != nil})
			return true
		}
		return false
	})
	if err != nil {
		return changes, err
	}
	if err := all.converge(ctx, changes); err != nil || len(left) == 0 {
		return changes, err
	}
	if err := all.waitAPIServices(ctx, left); err != nil {
		return changes, err
	}
	rest, err := store.Restore(ctx, to, func(key string, have, want *mvccpb.KeyValue) bool {
		return c.keeps(key, have, want) || want == nil && c.demanded(key, have)
	})
	changes = append(changes, rest...)
	if err != nil {
		return changes, err
	}
	return changes, all.converge(ctx, rest)
}

// Snapshot keeps the contents of the store when the aggregator has followed the
// CRDs, so that a restore brings back no state that it would change at once.
func (all Chains) Snapshot(ctx context.Context) (storage.Snapshot, error) {
	c := all[0]
	store, ok := c.cfg.Store.(storage.Snapshotter)
	if !ok {
		return nil, fmt.Errorf("store %s keeps no snapshots", c.cfg.Store)
	}
	if err := all.settleCRDs(ctx); err != nil {
		return nil, err
	}
	return store.Snapshot(ctx)
}

func (all Chains) settleCRDs(ctx context.Context) error {
	for _, c := range all {
		if err := c.settleCRDs(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (all Chains) converge(ctx context.Context, changes []storage.Change) error {
	for _, c := range all {
		if err := c.converge(ctx, changes); err != nil {
			return err
		}
	}
	return nil
}

func (all Chains) waitAPIServices(ctx context.Context, services []apiService) error {
	for _, c := range all {
		for _, service := range services {
			if err := c.waitAPIService(ctx, service); err != nil {
				return err
			}
		}
	}
	return nil
}
