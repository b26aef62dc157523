package store

import (
	"context"
	"fmt"

	"github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

var etcdTxnCases = []Case{
	{
		ID:      "etcd-txn/is-one-revision",
		Promise: "All writes of a transaction have one revision, and a watch has their events in one response.",
		Source:  guarantees + " (atomic)",
		Test: func(ctx context.Context, t *T) {
			last := t.Create(ctx, "gone", "1")
			watch := t.WatchAfter(ctx, last)
			resp, err := t.Client.Txn(ctx).Then(clientv3.OpPut(t.Key("a"), "1"), clientv3.OpPut(t.Key("b"), "1"),
				clientv3.OpDelete(t.Key("gone"))).Commit()
			t.Must(err, "write a and b and delete gone in one transaction")
			at := resp.Header.Revision
			events := watch.Next("the response with the three events of the transaction").Events
			t.Expect(revisions(events)).To(gomega.Equal([]int64{at, at, at}),
				"the revisions of the events in the first response after the transaction")
			t.Expect(t.names(t.List(ctx, "", at-1).Kvs)).To(gomega.Equal([]string{"gone"}),
				"the keys at the revision before the transaction")
			t.Expect(t.names(t.List(ctx, "", at).Kvs)).To(gomega.Equal([]string{"a", "b"}),
				"the keys at the revision of the transaction")
		},
	},
	{
		ID: "etcd-txn/takes-its-branch",
		Promise: "A transaction does what follows if all its comparisons hold, and the other branch if one does not, " +
			"and nothing of the one not taken.",
		Source: kvAPI,
		Test: func(ctx context.Context, t *T) {
			revision := t.Update(ctx, "a", "2", t.Create(ctx, "a", "1"))
			for i, by := range []struct {
				name  string
				cmp   clientv3.Cmp
				holds bool
			}{
				{"its value is 2", clientv3.Compare(clientv3.Value(t.Key("a")), "=", "2"), true},
				{"its value is greater than 2", clientv3.Compare(clientv3.Value(t.Key("a")), ">", "2"), false},
				{"its version is 2", clientv3.Compare(clientv3.Version(t.Key("a")), "=", 2), true},
				{"its version is not 2", clientv3.Compare(clientv3.Version(t.Key("a")), "!=", 2), false},
				{"it was created before it was modified",
					clientv3.Compare(clientv3.CreateRevision(t.Key("a")), "<", revision), true},
				{"it was modified later", clientv3.Compare(clientv3.ModRevision(t.Key("a")), ">", revision), false},
				{"it has no lease", clientv3.Compare(clientv3.LeaseValue(t.Key("a")), "=", 0), true},
				{"missing has version 0", clientv3.Compare(clientv3.Version(t.Key("missing")), "=", 0), true},
			} {
				branches := fmt.Sprintf("%d/", i)
				resp, err := t.Client.Txn(ctx).If(by.cmp).Then(clientv3.OpPut(t.Key(branches+"then"), "")).
					Else(clientv3.OpPut(t.Key(branches+"else"), "")).Commit()
				t.Must(err, "write if %s", by.name)
				t.Expect(resp.Succeeded).To(gomega.Equal(by.holds), "whether %s", by.name)
				want := branches + "else"
				if by.holds {
					want = branches + "then"
				}
				t.Expect(t.names(t.List(ctx, branches, 0).Kvs)).To(gomega.Equal([]string{want}),
					"what was written, by the condition that %s", by.name)
			}
		},
	},
	{
		ID:      "etcd-txn/reads-its-own-writes",
		Promise: "A read after a write in a transaction finds it, and one before does not.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			resp, err := t.Client.Txn(ctx).Then(clientv3.OpGet(t.Key("a")), clientv3.OpPut(t.Key("a"), "1"),
				clientv3.OpGet(t.Key("a"))).Commit()
			t.Must(err, "read, write and read a")
			t.Expect(resp.Responses).To(gomega.HaveLen(3), "the responses")
			t.Expect(resp.Responses[0].GetResponseRange().GetKvs()).To(gomega.BeEmpty(), "the read before the write")
			t.Expect(resp.Responses[2].GetResponseRange().GetKvs()).To(gomega.HaveLen(1), "the read after the write")
		},
	},
	{
		ID: "etcd-txn/refused-one-writes-nothing",
		Promise: "A transaction that writes a key twice is refused whole: etcdserver: duplicate key given in txn " +
			"request.",
		Source: kvAPI, Failure: true,
		Test: func(ctx context.Context, t *T) {
			_, err := t.Client.Txn(ctx).Then(clientv3.OpPut(t.Key("a"), "1"), clientv3.OpPut(t.Key("b"), "1"),
				clientv3.OpPut(t.Key("b"), "2")).Commit()
			t.refused(err, rpctypes.ErrDuplicateKey, "a transaction that writes b twice")
			t.Expect(t.names(t.List(ctx, "", 0).Kvs)).To(gomega.BeEmpty(), "what the refused transaction has written")
		},
	},
	{
		ID:      "etcd-txn/is-atomic",
		Promise: "Of two keys that a transaction writes together, no read under load has one without the other.",
		Source:  guarantees + " (atomic)",
		Test: func(ctx context.Context, t *T) {
			var writing errgroup.Group
			writing.Go(func() error {
				for _, value := range numbered(200) {
					if _, err := t.Other.Txn(ctx).Then(clientv3.OpPut(t.Key("a"), value),
						clientv3.OpPut(t.Key("b"), value)).Commit(); err != nil {
						return err
					}
				}
				return nil
			})
			for range 100 {
				got := t.List(ctx, "", 0)
				if len(got.Kvs) == 0 {
					continue
				}
				if len(got.Kvs) != 2 || string(got.Kvs[0].Value) != string(got.Kvs[1].Value) {
					t.Failf("a and b are written with the same value in one transaction; a list at revision %d has %s",
						got.Revision, text(got.Kvs...))
				}
			}
			t.Must(writing.Wait(), "write a and b together")
		},
	},
}
