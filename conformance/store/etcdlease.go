package store

import (
	"context"

	"github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

const leaseAPI = "https://etcd.io/docs/v3.6/learning/api/#lease-api"

var etcdLeaseCases = []Case{
	{
		ID:      "etcd-lease/revocation-deletes-its-keys",
		Promise: "When a lease is revoked, its keys are deleted at once, at one revision.",
		Source:  leaseAPI,
		Test: func(ctx context.Context, t *T) {
			lease := t.Grant(ctx, longTTL)
			for _, name := range []string{"a", "b"} {
				t.createWith(ctx, name, "1", kubernetes.PutOptions{LeaseID: lease})
			}
			watch := t.WatchAfter(ctx, t.Create(ctx, "kept", "1"))
			t.Must(errorOf(t.Client.Revoke(ctx, lease)), "revoke the lease of a and b")
			t.Expect(t.names(t.List(ctx, "", 0).Kvs)).To(gomega.Equal([]string{"kept"}), "the keys after that")
			events := watch.Events(2)
			t.Expect(events[0].Kv.ModRevision).To(gomega.Equal(events[1].Kv.ModRevision),
				"the revisions of the two deletions")
		},
	},
	{
		ID:      "etcd-lease/tells-its-time-and-keys",
		Promise: "A lease tells its granted and remaining time to live, and its keys.",
		Source:  leaseAPI,
		Test: func(ctx context.Context, t *T) {
			lease := t.Grant(ctx, longTTL)
			t.createWith(ctx, "a", "1", kubernetes.PutOptions{LeaseID: lease})
			got, err := t.Client.TimeToLive(ctx, lease, clientv3.WithAttachedKeys())
			t.Must(err, "ask for the time to live of lease %d", lease)
			t.Expect(got.GrantedTTL).To(gomega.BeEquivalentTo(longTTL), "the time to live it was granted with")
			t.Expect(got.TTL).To(gomega.And(gomega.BeNumerically(">", longTTL/2), gomega.BeNumerically("<=", longTTL)),
				"the time that is left")
			t.Expect(got.Keys).To(gomega.HaveLen(1), "its keys")
		},
	},
	{
		ID:      "etcd-lease/keepalive-renews-it",
		Promise: "A lease that is kept alive has its whole time to live again.",
		Source:  leaseAPI,
		Test: func(ctx context.Context, t *T) {
			lease := t.Grant(ctx, longTTL)
			got, err := t.Client.KeepAliveOnce(ctx, lease)
			t.Must(err, "keep lease %d alive", lease)
			t.Expect(got.TTL).To(gomega.BeEquivalentTo(longTTL), "the time that is left")
		},
	},
	{
		ID: "etcd-lease/unknown-one-is-refused",
		Promise: "A write with a lease that does not exist, or no longer does, is refused and writes nothing: " +
			"etcdserver: requested lease not found.",
		Source: leaseAPI, Failure: true,
		Test: func(ctx context.Context, t *T) {
			lease := t.Grant(ctx, longTTL)
			t.Must(errorOf(t.Client.Revoke(ctx, lease)), "revoke lease %d", lease)
			_, err := t.Client.Kubernetes.OptimisticPut(ctx, t.Key("a"), []byte("1"), 0,
				kubernetes.PutOptions{LeaseID: lease})
			t.refused(err, rpctypes.ErrLeaseNotFound, "a write with a lease that was revoked")
			if got, _ := t.Get(ctx, "a", 0); got != nil {
				t.Failf("a write with a lease that was revoked was refused, and a read finds %s", text(got))
			}
		},
	},
}
