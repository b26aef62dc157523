package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"

	"snowglobe.test/bench/startup"
	"snowglobe.test/bench/wire"
	"snowglobe.test/envtest/storage"
	"snowglobe.test/envtest/storage/embedded"
	"snowglobe.test/envtest/storage/memory"
)

// The baselines: what the parts of an API server do alone, with the same load on the same machine.
const (
	BaselineStore  = "store"  // the watch of the store, by an etcd client in the process
	BaselineCacher = "cacher" // upstream's watch cache on that store
	BaselineHTTP2  = "http2"  // a bare Go server that writes the same bytes over TLS
)

// Baselines are all of them.
var Baselines = []string{BaselineStore, BaselineCacher, BaselineHTTP2}

var baselines = map[string]func(*load) backend{
	BaselineStore:  func(l *load) backend { return &storeBaseline{load: l} },
	BaselineCacher: func(l *load) backend { return &cacherBaseline{storeBaseline: storeBaseline{load: l}} },
}

// storeBaseline is a store alone. The objects of a group have a prefix in common.
type storeBaseline struct {
	*load
	store  storage.Backend
	client *kubernetes.Client
}

// stores counts the stores of this process, which need names of their own.
var stores atomic.Int64

// newStore returns a store that is not started yet.
func newStore(kind string) storage.Backend {
	if kind == startup.StoreEmbedded {
		return embedded.New(embedded.Config{})
	}
	return memory.New(fmt.Sprintf("bench-%d", stores.Add(1)))
}

func (b *storeBaseline) start(ctx context.Context) (err error) {
	store := newStore(b.opts.Store)
	if err := store.Start(ctx); err != nil {
		return err
	}
	b.store = store
	b.client, err = store.Client()
	return err
}

const baselinePrefix = "/bench/"

func groupPrefix(group int) string { return baselinePrefix + strconv.Itoa(group) + "/" }

// prepare implements backend.
func (b *storeBaseline) prepare(ctx context.Context) (from string, err error) {
	if err := b.start(ctx); err != nil {
		return "", err
	}
	status, err := b.client.KV.Get(ctx, baselinePrefix)
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(status.Header.Revision, 10), nil
}

// write implements backend.
func (b *storeBaseline) write(ctx context.Context, writer int, at wire.Stamp) error {
	_, err := b.client.Put(ctx, groupPrefix(writer%b.groups)+objectName(writer), at.String()+b.payload())
	return err
}

// watch implements backend.
func (b *storeBaseline) watch(ctx context.Context, _, group int, from string) (stream, error) {
	revision, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	events := b.client.Watch(ctx, groupPrefix(group), clientv3.WithPrefix(), clientv3.WithRev(revision+1))
	return &storeStream{load: b.load, events: events, stopped: cancel}, nil
}

// close implements backend.
func (b *storeBaseline) close(ctx context.Context) error {
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
	load    *load
	events  clientv3.WatchChan
	stopped context.CancelFunc
	last    int64
}

func (s *storeStream) receive(ctx context.Context, each func(wire.Stamp, time.Duration) (bool, error)) (done bool, err error) {
	for {
		select {
		case response, ok := <-s.events:
			if !ok {
				return false, nil
			}
			if err := response.Err(); err != nil {
				return false, err
			}
			arrived := time.Since(s.load.begun)
			for _, event := range response.Events {
				s.last = event.Kv.ModRevision
				if done, err := tell(event.Kv.Value, arrived, each); done || err != nil {
					return done, err
				}
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (s *storeStream) newest() (string, error) {
	if s.last == 0 {
		return "", nil
	}
	return strconv.FormatInt(s.last, 10), nil
}

func (s *storeStream) stop() { s.stopped() }
