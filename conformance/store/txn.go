package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"golang.org/x/sync/errgroup"
)

const optimistic = "go.etcd.io/etcd/client/v3/kubernetes; " + etcd3Store

var txnCases = []Case{
	{
		ID:      "txn/create-of-an-existing-key-is-refused",
		Promise: "Creating a key that exists is refused and changes nothing.",
		Source:  optimistic, Failure: true,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "a", "1")
			resp, err := t.Client.Kubernetes.OptimisticPut(ctx, t.Key("a"), []byte("2"), 0, kubernetes.PutOptions{})
			t.Must(err, "create a again")
			t.Expect(resp.Succeeded).To(gomega.BeFalse(), "whether creating a again succeeded")
			t.unchanged(ctx, "a", "1", revision)
		},
	},
	{
		ID: "txn/stale-update-is-refused",
		Promise: "An update of another revision than the last is refused, changes nothing, and returns what the " +
			"key is now.",
		Source: optimistic, Failure: true,
		Test: func(ctx context.Context, t *T) {
			created := t.Create(ctx, "a", "1")
			updated := t.Update(ctx, "a", "2", created)
			for _, stale := range []int64{created, created - 1, updated + 1, 0} {
				resp, err := t.Client.Kubernetes.OptimisticPut(ctx, t.Key("a"), []byte("3"), stale, putOrTell)
				t.Must(err, "update a of revision %d", stale)
				t.refusal(resp.Succeeded, resp.KV, stale, "2", updated)
				t.unchanged(ctx, "a", "2", updated)
			}
		},
	},
	{
		ID:      "txn/update-of-a-missing-key-is-refused",
		Promise: "An update of a key that is gone is refused, creates nothing, and returns nothing.",
		Source:  optimistic, Failure: true,
		Test: func(ctx context.Context, t *T) {
			created := t.Create(ctx, "a", "1")
			t.Delete(ctx, "a", created)
			resp, err := t.Client.Kubernetes.OptimisticPut(ctx, t.Key("a"), []byte("2"), created, putOrTell)
			t.Must(err, "update a of revision %d", created)
			if resp.Succeeded || resp.KV != nil {
				t.Failf("a was deleted; an update of its revision %d: succeeded: %t, with %s as the present state",
					created, resp.Succeeded, text(resp.KV))
			}
			if got, _ := t.Get(ctx, "a", 0); got != nil {
				t.Failf("a was deleted, and an update of it refused; a read finds %s", text(got))
			}
		},
	},
	{
		ID:      "txn/update-of-revision-zero-creates",
		Promise: "An update of revision 0 creates the key, as guaranteed updates of missing objects do.",
		Source:  optimistic,
		Test: func(ctx context.Context, t *T) {
			t.unchanged(ctx, "a", "1", t.Update(ctx, "a", "1", 0))
		},
	},
	{
		ID: "txn/stale-delete-is-refused",
		Promise: "A delete of another revision than the last is refused, changes nothing, and returns what the " +
			"key is now.",
		Source: optimistic, Failure: true,
		Test: func(ctx context.Context, t *T) {
			created := t.Create(ctx, "a", "1")
			updated := t.Update(ctx, "a", "2", created)
			for _, stale := range []int64{created, updated + 1} {
				resp, err := t.Client.Kubernetes.OptimisticDelete(ctx, t.Key("a"), stale, deleteOrTell)
				t.Must(err, "delete a of revision %d", stale)
				t.refusal(resp.Succeeded, resp.KV, stale, "2", updated)
				t.unchanged(ctx, "a", "2", updated)
			}
		},
	},
	{
		ID: "txn/delete-of-a-missing-key-is-refused",
		Promise: "A delete of a key that is gone, or was never there, is refused and returns nothing: of two clients " +
			"that delete it, one is told that it did.",
		Source: optimistic, Failure: true,
		Test: func(ctx context.Context, t *T) {
			created := t.Create(ctx, "gone", "1")
			t.Delete(ctx, "gone", created)
			for _, name := range []string{"gone", "never"} {
				resp, err := t.Client.Kubernetes.OptimisticDelete(ctx, t.Key(name), created, deleteOrTell)
				t.Must(err, "delete %s of revision %d", name, created)
				if resp.Succeeded || resp.KV != nil {
					t.Failf("%s does not exist; a delete of its revision %d: succeeded: %t, with %s as the "+
						"present state", name, created, resp.Succeeded, text(resp.KV))
				}
			}
		},
	},
	{
		ID:      "txn/delete-has-a-revision",
		Promise: "A delete has a revision of its own, which is that of its event, and from which on the key is gone.",
		Source:  dataModel,
		Test: func(ctx context.Context, t *T) {
			created := t.Create(ctx, "a", "1")
			deleted := t.Delete(ctx, "a", created)
			t.Expect(deleted).To(gomega.BeNumerically(">", created), "the revision of the delete")
			if got, _ := t.Get(ctx, "a", deleted); got != nil {
				t.Failf("a was deleted at revision %d; a read at that revision finds %s", deleted, text(got))
			}
			event := t.WatchAfter(ctx, created).Events(1)[0]
			t.Expect(event.Kv.ModRevision).To(gomega.Equal(deleted), "the revision of the event of the delete")
		},
	},
	{
		ID: "txn/write-tells-its-own-revision",
		Promise: "Under load, creation, update, deletion and creation again each tell the revision of that write, " +
			"which becomes the object's resourceVersion.",
		Source: etcd3Store + "; KEP-5504",
		Test: func(ctx context.Context, t *T) {
			watch := t.Watch(ctx, "a", clientv3.WithRev(t.Create(ctx, "before", "1")+1))
			stop := make(chan struct{})
			var loading errgroup.Group
			loading.Go(func() error { return errorOf(t.loadUntil(ctx, 6, 100_000, stop)) })
			for range 30 {
				created := t.Create(ctx, "a", "1")
				t.unchanged(ctx, "a", "1", created)
				updated := t.Update(ctx, "a", "2", created)
				t.unchanged(ctx, "a", "2", updated)
				deleted := t.Delete(ctx, "a", updated)
				t.Expect(revisions(watch.Events(3))).To(gomega.Equal([]int64{created, updated, deleted}),
					"the revisions of the events of a, compared with those that the writes told")
			}
			close(stop)
			t.Must(loading.Wait(), "write meanwhile")
		},
	},
	{
		ID:      "txn/refused-write-has-no-event",
		Promise: "What is refused makes no event.",
		Source:  optimistic, Failure: true,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "a", "1")
			watch := t.WatchAfter(ctx, revision)
			_, err := t.Client.Kubernetes.OptimisticPut(ctx, t.Key("a"), []byte("2"), 0, kubernetes.PutOptions{})
			_, other := t.Client.Kubernetes.OptimisticPut(ctx, t.Key("a"), []byte("2"), revision+1, putOrTell)
			_, third := t.Client.Kubernetes.OptimisticDelete(ctx, t.Key("a"), revision+1, deleteOrTell)
			t.Must(errors.Join(err, other, third), "write what is refused")
			watch.Quiet(ctx, "marker")
		},
	},
	{
		ID:      "txn/one-of-many-creates-wins",
		Promise: "Of many clients that create one key at the same time, exactly one succeeds.",
		Source:  guarantees + "; k8s.io/client-go/tools/leaderelection",
		Test: func(ctx context.Context, t *T) {
			for _, name := range numbered(10) {
				var won [20]bool
				var racing errgroup.Group
				for i := range won {
					racing.Go(func() error {
						resp, err := t.either(i).Kubernetes.OptimisticPut(ctx, t.Key(name), []byte(strconv.Itoa(i)), 0,
							kubernetes.PutOptions{})
						won[i] = resp.Succeeded
						return err
					})
				}
				t.Must(racing.Wait(), "create %s by %d clients", name, len(won))
				var winners []string
				for i, succeeded := range won {
					if succeeded {
						winners = append(winners, strconv.Itoa(i))
					}
				}
				got, _ := t.Get(ctx, name, 0)
				if len(winners) != 1 || got == nil || string(got.Value) != winners[0] {
					t.Failf("%d clients created %s at the same time: %v were told that they did, and a read finds %s",
						len(won), name, winners, text(got))
				}
			}
		},
	},
	{
		ID: "txn/no-update-is-lost",
		Promise: "Of many clients that update one key at the same time, each of the revision that it read, none " +
			"overwrites another.",
		Source: guarantees + "; " + etcd3Store,
		Test: func(ctx context.Context, t *T) {
			t.Create(ctx, "counter", "0")
			const clients, each = 8, 10
			var counting errgroup.Group
			for i := range clients {
				counting.Go(func() error {
					for range each {
						if err := increment(ctx, t.either(i), t.Key("counter")); err != nil {
							return err
						}
					}
					return nil
				})
			}
			t.Must(counting.Wait(), "count")
			got, _ := t.Get(ctx, "counter", 0)
			t.Expect(string(got.Value)).To(gomega.Equal(strconv.Itoa(clients*each)),
				"the counter, after %d clients have added 1 %d times", clients, each)
		},
	},
}

// either is one of the two clients.
func (t *T) either(i int) *kubernetes.Client {
	if i%2 == 0 {
		return t.Client
	}
	return t.Other
}

// increment adds 1 to a key's value, as guaranteed updates do: again until it is not refused.
func increment(ctx context.Context, client *kubernetes.Client, key string) error {
	read, err := client.Kubernetes.Get(ctx, key, kubernetes.GetOptions{})
	if err != nil {
		return err
	}
	for kv := read.KV; kv != nil; {
		value, err := strconv.Atoi(string(kv.Value))
		if err != nil {
			return err
		}
		resp, err := client.Kubernetes.OptimisticPut(ctx, key, []byte(strconv.Itoa(value+1)), kv.ModRevision, putOrTell)
		if err != nil || resp.Succeeded {
			return err
		}
		kv = resp.KV
	}
	return fmt.Errorf("%s, which nobody deletes, is not there", key)
}

// unchanged fails the case unless a key has this value of this revision.
func (t *T) unchanged(ctx context.Context, name, value string, revision int64) {
	got, _ := t.Get(ctx, name, 0)
	if got == nil || string(got.Value) != value || got.ModRevision != revision {
		t.Failf("%s should have the value %q of revision %d; a read finds %s", name, value, revision, text(got))
	}
}

// refusal fails the case unless a write of a stale revision was refused with the present state.
func (t *T) refusal(succeeded bool, got *mvccpb.KeyValue, stale int64, value string, revision int64) {
	if succeeded || got == nil || string(got.Value) != value || got.ModRevision != revision {
		t.Failf("a has the value %q of revision %d; a write of its revision %d: succeeded: %t, with %s as the "+
			"present state", value, revision, stale, succeeded, text(got))
	}
}
