// Package restore brings the store of running API servers back to an earlier state,
// and waits until the servers have seen it. It writes to the store only, and never
// restarts a server.
package restore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"k8s.io/apimachinery/pkg/util/sets"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/internal/turn"
)

// Restorer takes snapshots of a store, and restores them below the servers that run
// on it, one Restorer for all. Make it with New.
type Restorer struct {
	store  storage.Backend
	writes serverWrites
	// turn is a lock on Restore: a channel, as a mutex would stop virtual time.
	turn turn.Lock
}

// New returns a Restorer of a store, which need not be started yet.
func New(store storage.Backend) *Restorer {
	return &Restorer{store: store, writes: serverWrites{last: map[string]int64{}}, turn: turn.New()}
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
// that, and returns what it wrote, in order. Every watch cache has then seen the changes of its
// resource, as have the servers' informers that no rule holds up; the handler of custom resources
// has seen those of the CRDs, and the aggregators have an APIService for every CRD and for no other.
// Clients' informers catch up as they always do. What a Restore could not wait for, because its
// context ended, the next one waits for. At last the servers forget the answers that they keep for
// some time.
//
// A CRD that goes is deleted when its objects are, and watchers have been told: a second
// after a server has seen it go, it ends their watches.
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
	if err := r.turn.Take(ctx); err != nil {
		return nil, fmt.Errorf("another restore has not ended: %w", err)
	}
	defer r.turn.Give()
	defer func() {
		for _, server := range servers {
			server.Caches.Empty()
		}
	}()
	if err := waitAPIServices(ctx, servers); err != nil {
		return nil, err
	}
	server := servers[0] // what is left alone is the same for all
	steps := restoration{store: store, servers: servers, to: to, leavesAlone: r.leavesAlone}
	later := going{custom: server.customResources(), crds: sets.New[string]()}
	var apiServices bool
	err = steps.restore(ctx, func(key string, have, want *mvccpb.KeyValue) bool {
		if later.keeps(server, key, want) {
			return true
		}
		ofCRD := server.isAPIServiceOfCRD(have) || server.isAPIServiceOfCRD(want)
		apiServices = apiServices || ofCRD
		return ofCRD
	})
	if err == nil {
		err = steps.deleteLater(ctx, &later)
	}
	if err != nil || !apiServices {
		return steps.changes, err
	}
	if err = waitAPIServices(ctx, servers); err == nil {
		err = steps.restore(ctx, func(key string, have, want *mvccpb.KeyValue) bool {
			// An APIService that the snapshot lacks would be created again.
			return want == nil && server.isAPIServiceOfCRD(have)
		})
	}
	return steps.changes, err
}

// restoration restores a store step by step.
type restoration struct {
	store   storage.Snapshotter
	servers []*Server
	to      storage.Snapshot
	changes []storage.Change // of all steps
	// leavesAlone is Restorer.leavesAlone.
	leavesAlone func(server *Server, key string, have, want *mvccpb.KeyValue) bool
}

// restore restores all but what is left alone and what keep reports, and waits until the
// servers have seen it.
func (r *restoration) restore(ctx context.Context, keep storage.Keep) error {
	changes, err := r.store.Restore(ctx, r.to, func(key string, have, want *mvccpb.KeyValue) bool {
		return r.leavesAlone(r.servers[0], key, have, want) || keep(key, have, want)
	})
	r.changes = append(r.changes, changes...)
	if err != nil {
		return err
	}
	return waitSeen(ctx, r.servers, changes)
}

func (r *Restorer) snapshotter() (storage.Snapshotter, error) {
	store, ok := r.store.(storage.Snapshotter)
	if !ok {
		return nil, fmt.Errorf("store %s keeps no snapshots", r.store)
	}
	return store, nil
}

// leavesAlone reports whether a restore leaves a key alone: another program's; one
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
