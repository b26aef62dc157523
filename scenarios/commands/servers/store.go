package servers

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/cluster"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/scenarios/engine"
)

// stores numbers the stores of a process, for their names.
var stores atomic.Int64

// The kinds of stores that a script can have.
const (
	memoryStore   = "memory"
	embeddedStore = "embedded"
	clusterStore  = "cluster"
)

var storeKinds = []string{memoryStore, embeddedStore, clusterStore}

// openStore starts the script's store, if it has none yet. An empty kind means the kind of
// the store that is open, or memory if none is.
func (s *Servers) openStore(ctx context.Context, kind string) error {
	if s.store != nil {
		if kind != "" && kind != s.storeKind {
			return fmt.Errorf("%w: the script's store is %s already", engine.ErrUsage, s.storeKind)
		}
		return nil
	}
	kind = cmp.Or(kind, memoryStore)
	store, err := newStore(kind)
	if err != nil {
		return err
	}
	if kind != memoryStore && !s.run.RealTime() {
		return fmt.Errorf("%w: a store of the kind %q needs sockets, and so real time; run the script with --real-time, and begin it with [virtual] skip", engine.ErrUsage, kind)
	}
	if err := store.Start(ctx); err != nil {
		return err
	}
	s.store, s.storeKind = store, kind
	if s.config.Store != nil {
		s.store = s.config.Store(store)
	}
	return nil
}

func checkStoreKind(kind string) error {
	return engine.CheckName("no store is called", kind, storeKinds)
}

func newStore(kind string) (storage.Backend, error) {
	switch kind {
	case memoryStore:
		return memory.New(fmt.Sprintf("script-%d", stores.Add(1))), nil
	case embeddedStore:
		return embedded.New(embedded.Config{}), nil
	case clusterStore:
		return cluster.New(cluster.Config{})
	}
	return nil, checkStoreKind(kind)
}
