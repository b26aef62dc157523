package store

import (
	"bytes"
	"context"
	"strings"

	"github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

const (
	dataModel  = "https://etcd.io/docs/v3.6/learning/data_model/"
	guarantees = "https://etcd.io/docs/v3.6/learning/api_guarantees/"
	kvAPI      = "https://etcd.io/docs/v3.6/learning/api/"
	etcd3Store = "k8s.io/apiserver/pkg/storage/etcd3/store.go"
)

var kvCases = []Case{
	{
		ID: "kv/create-is-read-back",
		Promise: "A created key is read with its value, and the revision of the write as its creation and " +
			"modification.",
		Source: dataModel + "; " + etcd3Store,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "a", "value")
			got, _ := t.Get(ctx, "a", 0)
			if got == nil {
				t.Failf("a was created at revision %d, and a read right after that finds nothing", revision)
			}
			t.Expect(string(got.Key)).To(gomega.Equal(t.Key("a")), "the key that was read")
			t.Expect(string(got.Value)).To(gomega.Equal("value"), "the value that was read")
			t.Expect(got.ModRevision).To(gomega.Equal(revision), "its last modification")
			t.Expect(got.CreateRevision).To(gomega.Equal(revision), "its creation")
			t.Expect(got.Lease).To(gomega.BeZero(), "its lease, of which there is none")
		},
	},
	{
		ID:      "kv/update-keeps-creation",
		Promise: "An update changes a key's value and modification, and keeps its creation.",
		Source:  dataModel,
		Test: func(ctx context.Context, t *T) {
			created := t.Create(ctx, "a", "1")
			updated := t.Update(ctx, "a", "2", created)
			got, _ := t.Get(ctx, "a", 0)
			if got == nil || string(got.Value) != "2" || got.ModRevision != updated || got.CreateRevision != created {
				t.Failf("a was created at revision %d and updated to 2 at %d; a read finds %s", created, updated,
					text(got))
			}
		},
	},
	{
		ID:      "kv/recreated-key-is-new",
		Promise: "A key that is deleted and created again has a new creation.",
		Source:  dataModel,
		Test: func(ctx context.Context, t *T) {
			t.Delete(ctx, "a", t.Update(ctx, "a", "2", t.Create(ctx, "a", "1")))
			again := t.Create(ctx, "a", "3")
			got, _ := t.Get(ctx, "a", 0)
			if got == nil || got.CreateRevision != again || got.ModRevision != again {
				t.Failf("a was deleted, and created again at revision %d; a read finds %s", again, text(got))
			}
		},
	},
	{
		ID:      "kv/every-write-has-a-higher-revision",
		Promise: "Each write, of whatever key, has a higher revision than all before it.",
		Source:  dataModel + "; KEP-5504",
		Test: func(ctx context.Context, t *T) {
			a := t.Create(ctx, "a", "1")
			b := t.Create(ctx, "b", "1")
			updated := t.Update(ctx, "a", "2", a)
			deleted := t.Delete(ctx, "b", b)
			again := t.Create(ctx, "b", "2")
			for i, pair := range [][2]int64{{a, b}, {b, updated}, {updated, deleted}, {deleted, again}} {
				if pair[0] >= pair[1] {
					t.Failf("write %d has revision %d, and write %d after it revision %d", i+1, pair[0], i+2, pair[1])
				}
			}
		},
	},
	{
		ID: "kv/read-tells-the-stores-revision",
		Promise: "Every read tells a revision of the store that is no older than the last write before it, whatever " +
			"key was written.",
		Source: guarantees + "; KEP-2340",
		Test: func(ctx context.Context, t *T) {
			t.Create(ctx, "read", "1")
			written := t.Create(ctx, "another", "1")
			_, got := t.Get(ctx, "read", 0)
			t.Expect(got).To(gomega.BeNumerically(">=", written), "the revision that a read of a key tells, after a "+
				"write of another")
			_, got = t.Get(ctx, "missing", 0)
			t.Expect(got).To(gomega.BeNumerically(">=", written), "the revision that a read of a missing key tells")
			t.Expect(t.List(ctx, "none/", 0).Revision).To(gomega.BeNumerically(">=", written),
				"the revision that an empty list tells")
			t.Expect(t.List(ctx, "", 0).Revision).To(gomega.BeNumerically(">=", written),
				"the revision that a list tells")
		},
	},
	{
		ID:      "kv/missing-key-is-no-error",
		Promise: "A read of a key that does not exist, or no longer does, finds nothing and is no error.",
		Source:  etcd3Store, Failure: true,
		Test: func(ctx context.Context, t *T) {
			got, _ := t.Get(ctx, "never", 0)
			if got != nil {
				t.Failf("never was not written, and a read finds %s", text(got))
			}
			t.Delete(ctx, "gone", t.Create(ctx, "gone", "1"))
			if got, _ = t.Get(ctx, "gone", 0); got != nil {
				t.Failf("gone was deleted, and a read finds %s", text(got))
			}
		},
	},
	{
		ID:      "kv/read-at-a-revision",
		Promise: "A read at a revision finds the key as it was then: not yet created, each value, or deleted.",
		Source:  guarantees + "; KEP-4988",
		Test: func(ctx context.Context, t *T) {
			before := t.Create(ctx, "before", "1")
			created := t.Create(ctx, "a", "1")
			updated := t.Update(ctx, "a", "2", created)
			deleted := t.Delete(ctx, "a", updated)
			for _, at := range []struct {
				revision int64
				want     string
			}{{before, ""}, {created, "1"}, {updated, "2"}, {deleted, ""}} {
				got, _ := t.Get(ctx, "a", at.revision)
				if (got == nil) != (at.want == "") || got != nil && string(got.Value) != at.want {
					t.Failf("at revision %d, a was %q; a read at that revision finds %s", at.revision, at.want,
						text(got))
				}
			}
		},
	},
	{
		ID: "kv/future-revision-is-refused",
		Promise: "A read at a revision that the store has not reached is refused with mvcc: required revision is a " +
			"future revision.",
		Source: kvAPI, Failure: true,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "a", "1")
			const ahead = 1 << 40
			_, err := t.Client.Kubernetes.Get(ctx, t.Key("a"), kubernetes.GetOptions{Revision: revision + ahead})
			t.refused(err, rpctypes.ErrFutureRev, "a get at a revision of the future")
			_, err = t.Client.Kubernetes.List(ctx, t.Prefix, kubernetes.ListOptions{Revision: revision + ahead})
			t.refused(err, rpctypes.ErrFutureRev, "a list at a revision of the future")
		},
	},
	{
		ID:      "kv/list-is-in-the-order-of-bytes",
		Promise: "A list is in the order of its keys' bytes.",
		Source:  kvAPI + "; " + etcd3Store,
		Test: func(ctx context.Context, t *T) {
			t.Fill(ctx, "b", "a/b", "B", "a-b", "a", "aa", "a.b", "a/", "0", "a_b", "~")
			got := t.List(ctx, "", 0)
			t.Expect(t.names(got.Kvs)).
				To(gomega.Equal([]string{"0", "B", "a", "a-b", "a.b", "a/", "a/b", "a_b", "aa", "b", "~"}))
		},
	},
	{
		ID: "kv/list-has-only-the-prefix",
		Promise: "A list has all keys that begin with its prefix and no others, however close their names and " +
			"whatever their wildcards would be in SQL.",
		Source: kvAPI,
		Test: func(ctx context.Context, t *T) {
			t.Fill(ctx, "pods/a", "pods/b/c", "pods0", "pods", "pod/a", "podsx/a", "Pods/a", "p_ds/a", "p%/a", "pods-a")
			t.Expect(t.names(t.List(ctx, "pods/", 0).Kvs)).To(gomega.Equal([]string{"pods/a", "pods/b/c"}),
				"below pods/")
			t.Expect(t.names(t.List(ctx, "p_ds/", 0).Kvs)).To(gomega.Equal([]string{"p_ds/a"}), "below p_ds/")
			t.Expect(t.names(t.List(ctx, "p%/", 0).Kvs)).To(gomega.Equal([]string{"p%/a"}), "below p%%/")
			t.Expect(t.names(t.List(ctx, "none/", 0).Kvs)).To(gomega.BeEmpty(), "below none/")
		},
	},
	{
		ID:      "kv/keys-differ-in-case",
		Promise: "Keys are bytes: two that differ in upper and lower case, or in a trailing space, are two keys.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			for _, name := range []string{"a", "A", "a ", "ä", "Ä"} {
				t.Create(ctx, name, "of "+name)
			}
			for _, name := range []string{"a", "A", "a ", "ä", "Ä"} {
				if got, _ := t.Get(ctx, name, 0); got == nil || string(got.Value) != "of "+name {
					t.Failf("%q has the value %q; a read finds %s", name, "of "+name, text(got))
				}
			}
		},
	},
	{
		ID: "kv/list-at-a-revision",
		Promise: "A list at a revision has the keys and values of then, also those that are gone now, and none that " +
			"came later.",
		Source: guarantees + "; KEP-4988",
		Test: func(ctx context.Context, t *T) {
			a := t.Create(ctx, "a", "1")
			b := t.Create(ctx, "b", "1")
			then := t.Update(ctx, "a", "2", a)
			t.Update(ctx, "a", "3", then)
			t.Delete(ctx, "b", b)
			t.Create(ctx, "c", "1")
			got := t.List(ctx, "", then)
			t.Expect(t.names(got.Kvs)).To(gomega.Equal([]string{"a", "b"}), "the keys at revision %d", then)
			t.Expect(string(got.Kvs[0].Value)).To(gomega.Equal("2"), "the value of a at revision %d", then)
			t.Expect(got.Count).To(gomega.BeEquivalentTo(2), "the count at revision %d", then)
			t.Expect(t.names(t.List(ctx, "", 0).Kvs)).To(gomega.Equal([]string{"a", "c"}), "the keys now")
		},
	},
	{
		ID:      "kv/count",
		Promise: "A count is the number of keys below a prefix, without those that are deleted.",
		Source:  "k8s.io/apiserver/pkg/storage/etcd3/stats.go; " + etcd3Store,
		Test: func(ctx context.Context, t *T) {
			last := t.Fill(ctx, append(numbered(30), "x/a", "x/b")...)
			t.Delete(ctx, "x/b", last)
			for prefix, want := range map[string]int64{"00": 30, "000": 10, "x/": 1, "none/": 0} {
				got, err := t.Client.Kubernetes.Count(ctx, t.Key(prefix), kubernetes.CountOptions{})
				t.Must(err, "count %s", prefix)
				t.Expect(got).To(gomega.Equal(want), "the count of %s", prefix)
			}
		},
	},
	{
		ID:      "kv/keys-only-has-no-values",
		Promise: "A list of keys only has all keys with their revisions, and no values.",
		Source:  "k8s.io/apiserver/pkg/storage/etcd3/stats.go",
		Test: func(ctx context.Context, t *T) {
			revision := t.Fill(ctx, "a", "b")
			got, err := t.Client.KV.Get(ctx, t.Prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
			t.Must(err, "list the keys")
			t.Expect(t.names(got.Kvs)).To(gomega.Equal([]string{"a", "b"}))
			t.Expect(got.Kvs[0].Value).To(gomega.BeEmpty(), "the value of a in a list of keys only")
			t.Expect(got.Kvs[1].ModRevision).To(gomega.Equal(revision), "the modification of b in a list of keys only")
		},
	},
	{
		ID:      "kv/values-are-bytes",
		Promise: "Values are bytes, returned as they were written: zeros, invalid UTF-8, and none at all.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			bytesOfAllKinds := make([]byte, 256)
			for i := range bytesOfAllKinds {
				bytesOfAllKinds[i] = byte(i)
			}
			for name, value := range map[string]string{"all": string(bytesOfAllKinds), "empty": "", "quotes": `'";--`,
				"zeros": "\x00\x00"} {
				t.Create(ctx, name, value)
				got, _ := t.Get(ctx, name, 0)
				if got == nil || string(got.Value) != value {
					t.Failf("%s was written with the value %q; a read finds %s", name, value, text(got))
				}
			}
		},
	},
	{
		ID:      "kv/megabyte-value",
		Promise: "A value of a megabyte is stored whole, and listed with others like it.",
		Source:  "https://etcd.io/docs/v3.6/dev-guide/limit/",
		Test: func(ctx context.Context, t *T) {
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				t.Create(ctx, name, strings.Repeat(name, 1<<20))
			}
			got := t.List(ctx, "", 0)
			t.Expect(t.names(got.Kvs)).To(gomega.Equal([]string{"a", "b", "c", "d", "e"}))
			for _, kv := range got.Kvs {
				if want := bytes.Repeat(kv.Key[len(kv.Key)-1:], 1<<20); !bytes.Equal(kv.Value, want) {
					t.Failf("%s was written with a megabyte of the same letter; a list has %d bytes, %.20q...", kv.Key,
						len(kv.Value), kv.Value)
				}
			}
		},
	},
}

// refused fails the case unless an error is the one that Kubernetes compares with.
func (t *T) refused(err, want error, request string) {
	switch {
	case err == nil:
		t.Failf("%s: want the error %q, and it succeeded", request, want)
	case err != want:
		t.Failf("%s: want the error %q, got: %v", request, want, err)
	}
}
