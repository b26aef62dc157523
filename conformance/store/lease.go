package store

import (
	"context"
	"time"

	"github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

const (
	leaseManager = "k8s.io/apiserver/pkg/storage/etcd3/lease_manager.go"
	// shortTTL is that of leases that are to expire.
	shortTTL = 2
	// longTTL is that of leases that are not.
	longTTL = 600
	// expiryPatience is how much longer than for other things is waited for the end of a lease:
	// etcd looks twice a second, and gives a leader that has just been elected more time.
	expiryPatience = 2
)

var leaseCases = []Case{
	{
		ID:      "lease/grant-has-at-least-its-ttl",
		Promise: "A lease is granted with an ID and at least the time to live that was asked for.",
		Source:  leaseManager,
		Test: func(ctx context.Context, t *T) {
			granted, err := t.Client.Grant(ctx, longTTL)
			t.Must(err, "grant a lease")
			t.Expect(granted.ID).NotTo(gomega.BeZero(), "the ID of the lease")
			t.Expect(granted.TTL).To(gomega.BeNumerically(">=", longTTL), "the time to live of the lease")
		},
	},
	{
		ID:      "lease/key-tells-its-lease",
		Promise: "A key tells its lease, and none once it is updated without one.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			lease := t.Grant(ctx, longTTL)
			revision := t.createWith(ctx, "a", "1", kubernetes.PutOptions{LeaseID: lease})
			got, _ := t.Get(ctx, "a", 0)
			t.Expect(got.Lease).To(gomega.Equal(int64(lease)), "the lease of a, written with lease %d", lease)
			t.Update(ctx, "a", "2", revision)
			got, _ = t.Get(ctx, "a", 0)
			t.Expect(got.Lease).To(gomega.BeZero(), "the lease of a, updated without one")
		},
	},
	{
		ID: "lease/expiry-deletes-all-its-keys",
		Promise: "When a lease expires, each key that has it is deleted, with an event that has a revision, the key " +
			"and its last value.",
		Source: leaseManager + "; https://etcd.io/docs/v3.6/learning/api/#lease-api",
		Test: func(ctx context.Context, t *T) {
			kept := t.Create(ctx, "kept", "1")
			watch := t.WatchAfter(ctx, kept)
			lease := t.Grant(ctx, shortTTL)
			for _, name := range []string{"a", "b", "c"} {
				t.createWith(ctx, name, "of "+name, kubernetes.PutOptions{LeaseID: lease})
			}
			last := watch.Events(3)[2].Kv.ModRevision
			gone := watch.expiries(3)
			for _, name := range []string{"a", "b", "c"} {
				event := gone[t.Key(name)]
				if event == nil || event.Kv.ModRevision <= last || event.PrevKv == nil ||
					string(event.PrevKv.Value) != "of "+name {
					t.Failf("the lease of a, b and c has expired; the event of %s is %v", name, event)
				}
			}
			t.Expect(t.names(t.List(ctx, "", 0).Kvs)).To(gomega.Equal([]string{"kept"}), "the keys after that")
		},
	},
	{
		ID:      "lease/does-not-expire-early",
		Promise: "A key is there for at least its lease's time to live.",
		Source:  leaseManager,
		Test: func(ctx context.Context, t *T) {
			watch := t.WatchAfter(ctx, t.Create(ctx, "kept", "1"))
			before := time.Now()
			lease := t.Grant(ctx, shortTTL)
			t.createWith(ctx, "a", "1", kubernetes.PutOptions{LeaseID: lease})
			watch.Events(1)
			watch.expiries(1)
			t.Expect(time.Since(before)).To(gomega.BeNumerically(">=", shortTTL*time.Second),
				"the life of a key whose lease lives %d s", shortTTL)
		},
	},
	{
		ID:      "lease/update-takes-a-key-off-its-lease",
		Promise: "A key that was updated without a lease, or with another, outlives its former one.",
		Source: "k8s.io/apiserver/pkg/storage/etcd3/store.go (GuaranteedUpdate); " +
			"k8s.io/kubernetes/pkg/controlplane/reconcilers/lease.go",
		Test: func(ctx context.Context, t *T) {
			watch := t.WatchAfter(ctx, t.Create(ctx, "kept", "1"))
			short, long := t.Grant(ctx, shortTTL), t.Grant(ctx, longTTL)
			for _, name := range []string{"freed", "moved", "expires"} {
				t.createWith(ctx, name, "1", kubernetes.PutOptions{LeaseID: short})
			}
			for name, lease := range map[string]clientv3.LeaseID{"freed": 0, "moved": long} {
				got, _ := t.Get(ctx, name, 0)
				t.updateWith(ctx, name, "2", got.ModRevision, kubernetes.PutOptions{LeaseID: lease})
			}
			watch.Events(5)
			if gone := watch.expiries(1); gone[t.Key("expires")] == nil {
				t.Failf("only the lease of expires has expired; but these were deleted: %v", gone)
			}
			watch.Quiet(ctx, "marker")
			t.Expect(t.names(t.List(ctx, "", 0).Kvs)).To(gomega.Equal([]string{"freed", "kept", "marker", "moved"}),
				"the keys after the short lease has expired")
		},
	},
	{
		ID:      "lease/expired-key-can-be-created-again",
		Promise: "A key whose lease has expired can be created again, and stays.",
		Source:  leaseManager,
		Test: func(ctx context.Context, t *T) {
			watch := t.WatchAfter(ctx, t.Create(ctx, "kept", "1"))
			t.createWith(ctx, "a", "1", kubernetes.PutOptions{LeaseID: t.Grant(ctx, shortTTL)})
			watch.Events(1)
			watch.expiries(1)
			again := t.Create(ctx, "a", "2")
			t.unchanged(ctx, "a", "2", again)
			t.Expect(watch.Events(1)[0].IsCreate()).To(gomega.BeTrue(), "whether the event is of a creation")
		},
	},
}

// Grant returns a new lease, with a time to live in seconds.
func (t *T) Grant(ctx context.Context, ttl int64) clientv3.LeaseID {
	granted, err := t.Client.Grant(ctx, ttl)
	t.Must(err, "grant a lease of %d s", ttl)
	return granted.ID
}

// expiries waits until leases have deleted so many keys, and returns the events by key.
func (w *Watch) expiries(n int) map[string]*clientv3.Event {
	gone := map[string]*clientv3.Event{}
	for len(gone) < n {
		resp, ok := w.poll(shortTTL*time.Second + expiryPatience*w.t.patience)
		if !ok || resp.Err() != nil {
			w.t.Failf("a lease of %d s should have deleted %d keys by now; there were %d events: %v (%v)", shortTTL, n,
				len(gone), gone, resp.Err())
		}
		for _, event := range resp.Events {
			if event.Type != mvccpb.DELETE || gone[string(event.Kv.Key)] != nil {
				w.t.Failf("one event was expected of each key whose lease expires; this came: %s", history(resp.Events))
			}
			gone[string(event.Kv.Key)] = event
		}
	}
	return gone
}
