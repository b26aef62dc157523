// Package restore brings the store of running API servers back to an earlier state,
// and waits until the servers have seen it. It writes to the store only, and never
// restarts a server.
package restore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"snowglobe.test/envtest/storage"
)

// Restorer takes snapshots of a store, and restores them below the servers that run
// on it, one Restorer for all. Make it with New.
type Restorer struct {
	store  storage.Backend
	writes serverWrites
	// turn is a lock on Restore: a channel, as a mutex would stop virtual time.
	turn chan struct{}
}

// New returns a Restorer of a store, which need not be started yet.
func New(store storage.Backend) *Restorer {
	return &Restorer{store: store, writes: serverWrites{last: map[string]int64{}}, turn: make(chan struct{}, 1)}
}

// Snapshot returns the state of the store when the aggregators of all servers have
// followed the CRDs; one that they would change at once is not worth keeping.
func (r *Restorer) Snapshot(ctx context.Context, servers []*Server) (storage.Snapshot, error) {
	store, err := r.snapshotter()
	if err != nil {
		return nil, err
	}
	if err := waitAPIServices(ctx, servers); err != nil {
		return nil, err
	}
	return store.Snapshot(ctx)
}

// Restore brings the store back to a snapshot, waits until all servers have seen
// that, and returns what it wrote, in order. Every watch cache has then seen the
// changes of its resource, the handler of custom resources those of the CRDs, and
// the aggregators have an APIService for every CRD and for no other. Other
// informers, of servers and clients, catch up as they always do. What a Restore
// could not wait for, because its context ended, the next one waits for.
//
// The aggregators create and delete the APIServices of CRDs by themselves, whenever
// they see one without the other. So these are left to them at first, and restored
// when the aggregators have nothing more to do.
func (r *Restorer) Restore(ctx context.Context, servers []*Server, to storage.Snapshot) ([]storage.Change, error) {
	store, err := r.snapshotter()
	if err != nil {
		return nil, err
	}
	if len(servers) == 0 {
		return nil, errors.New("no API server runs")
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("another restore has not ended: %w", context.Cause(ctx))
	}
	if err := waitAPIServices(ctx, servers); err != nil {
		return nil, err
	}
	server, skipped := servers[0], false // what is left alone is the same for all
	changes, err := store.Restore(ctx, to, func(key string, have, want *mvccpb.KeyValue) bool {
		if r.leavesAlone(server, key, have, want) {
			return true
		}
		ofCRD := server.isAPIServiceOfCRD(have) || server.isAPIServiceOfCRD(want)
		skipped = skipped || ofCRD
		return ofCRD
	})
	if err == nil {
		err = waitSeen(ctx, servers, changes)
	}
	if err != nil || !skipped {
		return changes, err
	}
	if err := waitAPIServices(ctx, servers); err != nil {
		return changes, err
	}
	rest, err := store.Restore(ctx, to, func(key string, have, want *mvccpb.KeyValue) bool {
		// An APIService that the snapshot lacks would be created again.
		return r.leavesAlone(server, key, have, want) || want == nil && server.isAPIServiceOfCRD(have)
	})
	if err == nil {
		err = waitSeen(ctx, servers, rest)
	}
	return append(changes, rest...), err
}

func (r *Restorer) snapshotter() (storage.Snapshotter, error) {
	store, ok := r.store.(storage.Snapshotter)
	if !ok {
		return nil, fmt.Errorf("store %s keeps no snapshots", r.store)
	}
	return store, nil
}

// leavesAlone reports whether a restore leaves a key alone: somebody else's; one
// that only servers have written; and one that a server writes in the background a
// moment after it is ready, if the snapshot is from before.
func (r *Restorer) leavesAlone(server *Server, key string, have, want *mvccpb.KeyValue) bool {
	object, own := server.object(key)
	switch {
	case !own, server.isHeartbeat(object, have, want):
		return true
	case have != nil && want != nil:
		return r.writes.wroteLast(have)
	}
	return want == nil && server.isBackgroundObject(object)
}

func waitAPIServices(ctx context.Context, servers []*Server) error {
	for _, server := range servers {
		if err := server.waitAPIServices(ctx); err != nil {
			return err
		}
	}
	return nil
}

func waitSeen(ctx context.Context, servers []*Server, changes []storage.Change) error {
	for _, server := range servers {
		server.unseen = append(server.unseen, changes...)
	}
	for _, server := range servers {
		if err := server.waitSeen(ctx); err != nil {
			return err
		}
	}
	return nil
}
