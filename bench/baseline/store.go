// Package baseline has what the parts of an API server do alone, under the same loads on the same
// machine: the store, upstream's watch cache on it, and a Go server that writes the same bytes. It
// measures nothing itself.
package baseline

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/bench/wire"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/storage/memory"
)

// Store is the backend of loads on a store alone, by an etcd client in the process.
func Store(l *load.Load) load.Backend { return &storeBackend{Load: l} }

// storeBackend is a store alone. The objects of a group have a prefix in common.
type storeBackend struct {
	*load.Load
	store  storage.Backend
	client *kubernetes.Client
}

// stores counts the stores of this process, which need names of their own.
var stores atomic.Int64

// newStore returns a store that is not started yet.
func newStore(kind string) storage.Backend {
	if kind == measure.StoreEmbedded {
		return embedded.New(embedded.Config{})
	}
	return memory.New(fmt.Sprintf("bench-%d", stores.Add(1)))
}

func (b *storeBackend) start(ctx context.Context) (err error) {
	store := newStore(b.Options.Store)
	if err := store.Start(ctx); err != nil {
		return err
	}
	b.store = store
	b.client, err = store.Client()
	return err
}

const prefix = "/bench/"

func groupPrefix(group int) string { return prefix + strconv.Itoa(group) + "/" }

// Prepare implements Backend.
func (b *storeBackend) Prepare(ctx context.Context) (from string, err error) {
	if err := b.start(ctx); err != nil {
		return "", err
	}
	status, err := b.client.KV.Get(ctx, prefix)
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(status.Header.Revision, 10), nil
}

// Write implements Backend.
func (b *storeBackend) Write(ctx context.Context, writer int, at wire.Stamp) error {
	_, err := b.client.Put(ctx, groupPrefix(writer%b.Groups)+load.ObjectName(writer), at.String()+b.Payload())
	return err
}

// Watch implements Backend.
func (b *storeBackend) Watch(ctx context.Context, _, group int, from string) (load.Stream, error) {
	revision, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	events := b.client.Watch(ctx, groupPrefix(group), clientv3.WithPrefix(), clientv3.WithRev(revision+1))
	return &storeStream{load: b.Load, events: events, stopped: cancel}, nil
}

// Close implements Backend.
func (b *storeBackend) Close(ctx context.Context) error {
	if b.client != nil {
		_ = b.client.Close() // an error only says how its watches ended
	}
	if b.store == nil {
		return nil
	}
	return b.store.Stop(context.WithoutCancel(ctx))
}

// storeStream is a watch of an etcd client.
type storeStream struct {
	load    *load.Load
	events  clientv3.WatchChan
	stopped context.CancelFunc
	last    int64
}

func (s *storeStream) Receive(ctx context.Context, each func(wire.Stamp, time.Duration) (bool, error)) (done bool,
	err error) {
	for {
		select {
		case response, ok := <-s.events:
			if !ok {
				return false, nil
			}
			if err := response.Err(); err != nil {
				return false, err
			}
			arrived := s.load.Now()
			for _, event := range response.Events {
				s.last = event.Kv.ModRevision
				if done, err := load.Tell(event.Kv.Value, arrived, each); done || err != nil {
					return done, err
				}
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (s *storeStream) Newest() (string, error) {
	if s.last == 0 {
		return "", nil
	}
	return strconv.FormatInt(s.last, 10), nil
}

func (s *storeStream) Stop() { s.stopped() }
