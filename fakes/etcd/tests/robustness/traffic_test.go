package robustness

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/tests/v3/robustness/client"
	"go.etcd.io/etcd/tests/v3/robustness/identity"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/traffic"
	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// load is how much traffic there is.
type load struct {
	revisions int64 // to be reached
	writers   int
	watchers  int
	// requests and watches per second, of all clients together
	requests, watches rate.Limit
}

// simulate runs upstream's traffic until the store has reached that many
// revisions, and returns what the clients recorded.
func simulate(t *testing.T, open dialer, kind traffic.Traffic, l load) []report.ClientReport {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clients := newRecorders(open)
	first := clients.client(t)
	// The model begins with an empty store, and wants to see that it is one.
	empty, err := first.Get(ctx, "key")
	require.NoError(t, err)
	require.EqualValues(t, 1, empty.Header.Revision)

	finish := make(chan struct{})
	keys, storage := traffic.NewKeyStore(10, "key"), traffic.NewKubernetesStorage()
	requests := rate.NewLimiter(l.requests, int(l.requests/10))
	var group sync.WaitGroup
	start := func(loop func(c *client.RecordingClient)) {
		c := clients.client(t)
		group.Go(func() { loop(c) })
	}
	leases, limiter := identity.NewLeaseIDStorage(), traffic.NewConcurrencyLimiter(3)
	for range l.writers {
		start(func(c *client.RecordingClient) {
			kind.RunKeyValueLoop(ctx, c, traffic.RunTrafficLoopParam{
				QPSLimiter: requests, IDs: clients.ids, LeaseIDStorage: leases,
				NonUniqueRequestConcurrencyLimiter: limiter, KeyStore: keys, Storage: storage, Finish: finish,
			})
		})
	}
	watches := rate.NewLimiter(l.watches, 1)
	for range l.watchers {
		start(func(c *client.RecordingClient) {
			kind.RunWatchLoop(ctx, c, traffic.RunWatchLoopParam{
				Config:     traffic.Watch{RevisionOffsetRange: traffic.Range{Min: -100, Max: 100}},
				QPSLimiter: watches, KeyStore: keys, Storage: storage, Finish: finish, Logger: zap.NewNop(),
			})
		})
	}
	start(func(c *client.RecordingClient) {
		kind.RunCompactLoop(ctx, c, traffic.RunCompactLoopParam{Period: traffic.MinimalCompactionPeriod, Finish: finish})
	})
	var followers sync.WaitGroup
	reached := sync.OnceFunc(func() { close(finish) })
	for _, prefix := range []string{"", lastPrefix} {
		c := clients.client(t)
		followers.Go(func() {
			follow(ctx, c, prefix, func(revision int64) {
				if revision >= l.revisions {
					reached()
				}
			})
		})
	}
	group.Wait()
	// The last operation must be seen to succeed, and by the followers.
	_, err = first.Put(ctx, lastKey, "true")
	require.NoError(t, err)
	followers.Wait()
	return clients.reports()
}

// lastKey is the last one written, and the only one with its prefix.
const (
	lastKey    = "tombstone"
	lastPrefix = "t"
)

// follow watches what begins with a prefix, with all that a watch can tell, until
// the last key is written. It calls at with the revision of every event.
func follow(ctx context.Context, c *client.RecordingClient, prefix string, at func(revision int64)) {
	next := int64(2)
	for ctx.Err() == nil {
		for resp := range c.Watch(ctx, prefix, next, true, true, true) {
			if resp.CompactRevision != 0 {
				next = resp.CompactRevision
				break
			}
			for _, ev := range resp.Events {
				next = ev.Kv.ModRevision + 1
				at(ev.Kv.ModRevision)
				if string(ev.Kv.Key) == lastKey || prefix == lastPrefix {
					return
				}
				if ev.Kv.ModRevision%50 == 0 {
					_ = c.RequestProgress(ctx) // it fails when the client is closed
				}
			}
		}
	}
}

// seen counts what a record holds, to show that it holds something.
type seen struct {
	operations, watches, events, progress, compactions int
}

func count(reports []report.ClientReport) (n seen) {
	for _, r := range reports {
		n.operations += len(r.KeyValue)
		n.watches += len(r.Watch)
		n.events += r.WatchEventCount()
		for _, op := range r.KeyValue {
			if compacted(op) {
				n.compactions++
			}
		}
		for _, w := range r.Watch {
			for _, resp := range w.Responses {
				if resp.IsProgressNotify {
					n.progress++
				}
			}
		}
	}
	return n
}

// patience is the time limit of a request, ample enough for a busy machine.
const patience = time.Minute

// watchTime is how long upstream's traffic keeps a watch.
const watchTime = 200 * time.Millisecond
