package scenarios

import (
	"context"
	"fmt"
	"sync/atomic"

	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/cluster"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/storage/memory"
	"snowglobe.test/internal/nearest"
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

// openStore starts the script's store, if it has none yet. An empty kind is the one
// that there is, or else memory.
func (s *session) openStore(ctx context.Context, kind string) error {
	if s.store != nil {
		if kind != "" && kind != s.storeKind {
			return fmt.Errorf("%w: the script's store is %s already", errUsage, s.storeKind)
		}
		return nil
	}
	if kind == "" {
		kind = memoryStore
	}
	store, err := newStore(kind)
	if err != nil {
		return err
	}
	if kind != memoryStore && !s.opts.RealTime {
		return fmt.Errorf("%w: a store of the kind %q needs sockets, and so real time; run the script with --real-time, and begin it with [virtual] skip", errUsage, kind)
	}
	if err := store.Start(ctx); err != nil {
		return err
	}
	s.store, s.storeKind = store, kind
	if s.opts.Store != nil {
		s.store = s.opts.Store(store)
	}
	return nil
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
	return nil, fmt.Errorf("%w: no store is called %q%s; there are %s", errUsage, kind, nearest.DidYouMean(kind, storeKinds), nearest.Either(storeKinds))
}
