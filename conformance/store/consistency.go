package store

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"golang.org/x/sync/errgroup"
)

var consistencyCases = []Case{
	{
		ID:      "consistency/others-read-what-is-written",
		Promise: "Once a write has succeeded, a read by any client finds it.",
		Source:  guarantees + " (linearizable)",
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "a", "0")
			for i := range 100 {
				want := strconv.Itoa(i)
				revision = t.Update(ctx, "a", want, revision)
				got, err := t.Other.Kubernetes.Get(ctx, t.Key("a"), kubernetes.GetOptions{})
				t.Must(err, "get a by another client")
				if got.KV == nil || string(got.KV.Value) != want || got.KV.ModRevision != revision ||
					got.Revision < revision {
					t.Failf("a was updated to %s at revision %d; a read after that by another client, at revision "+
						"%d, finds %s", want, revision, got.Revision, text(got.KV))
				}
			}
		},
	},
	{
		ID:      "consistency/lists-are-of-now",
		Promise: "Once a write has succeeded, a list by any client has it, and so has a count.",
		Source:  guarantees + " (linearizable); KEP-2340",
		Test: func(ctx context.Context, t *T) {
			for i, name := range numbered(50) {
				revision := t.Create(ctx, name, "1")
				got, err := t.Other.Kubernetes.List(ctx, t.Prefix, kubernetes.ListOptions{})
				t.Must(err, "list by another client")
				if len(got.Kvs) != i+1 || got.Revision < revision {
					t.Failf("%d keys are written, the last at revision %d; a list after that by another client has "+
						"%d, at revision %d", i+1, revision, len(got.Kvs), got.Revision)
				}
				count, err := t.Other.Kubernetes.Count(ctx, t.Prefix, kubernetes.CountOptions{})
				t.Must(err, "count by another client")
				t.Expect(count).To(gomega.BeEquivalentTo(i+1), "the count of keys by another client, after %s "+
					"was written", name)
			}
		},
	},
	{
		ID: "consistency/histories-are-linearizable",
		Promise: "Concurrent reads and conditional writes of a key by several clients are as if one came after " +
			"another.",
		Source: guarantees + " (linearizable)",
		Test: func(ctx context.Context, t *T) {
			for _, key := range []string{"a", "b"} {
				operations, err := recordRegister(ctx, t, key)
				t.Must(err, "read and write %s by several clients", key)
				if verdict := checkRegister(operations); verdict != "" {
					t.Failf("%d operations on %s by several clients: %s", len(operations), key, verdict)
				}
			}
		},
	},
	{
		ID: "consistency/list-is-one-moment",
		Promise: "A list is of one moment: of two keys that are written in turn, it never has the second write " +
			"without the first.",
		Source: guarantees,
		Test: func(ctx context.Context, t *T) {
			t.Create(ctx, "a", "-1")
			t.Create(ctx, "b", "-1")
			var ended atomic.Bool
			var writing errgroup.Group
			writing.Go(func() error {
				defer ended.Store(true)
				return writeInTurn(ctx, t, 300, "b", "a") // a is listed first, and written last
			})
			for !ended.Load() {
				got := t.List(ctx, "", 0)
				t.Expect(t.names(got.Kvs)).To(gomega.Equal([]string{"a", "b"}))
				a, b := t.number(got.Kvs[0]), t.number(got.Kvs[1])
				if a > b || b > a+1 || got.Kvs[0].ModRevision > got.Revision || got.Kvs[1].ModRevision > got.Revision {
					t.Failf("b is written before a each time; a list at revision %d has %s", got.Revision,
						text(got.Kvs...))
				}
			}
			t.Must(writing.Wait(), "write a and b in turn")
		},
	},
	{
		ID:      "consistency/revisions-do-not-go-back",
		Promise: "Of reads one after another, by whichever client, none tells an older revision than the one before.",
		Source:  guarantees + "; KEP-2340",
		Test: func(ctx context.Context, t *T) {
			var ended atomic.Bool
			var writing errgroup.Group
			writing.Go(func() error {
				defer ended.Store(true)
				return errorOf(t.tryLoad(ctx, 4, 75))
			})
			last := int64(0)
			for i := 0; !ended.Load(); i++ {
				got, err := t.either(i).Kubernetes.Get(ctx, t.Key("missing"), kubernetes.GetOptions{})
				t.Must(err, "get")
				if got.Revision < last {
					t.Failf("a read told revision %d, and the next one, by another client, revision %d", last,
						got.Revision)
				}
				last = got.Revision
			}
			t.Must(writing.Wait(), "write meanwhile")
		},
	},
	{
		ID:      "consistency/past-does-not-change",
		Promise: "A list at a revision of the past is the same each time, whatever is written meanwhile.",
		Source:  guarantees + "; KEP-4988",
		Test: func(ctx context.Context, t *T) {
			written := t.load(ctx, 4, 25)
			at := written[len(written)/2]
			want := text(t.List(ctx, "", at).Kvs...)
			var writing errgroup.Group
			writing.Go(func() error { return writeInTurn(ctx, t, 50, "load-00", "load-01") })
			for range 30 {
				t.Expect(text(t.List(ctx, "", at).Kvs...)).To(gomega.Equal(want),
					"the list at revision %d, while keys are written", at)
			}
			t.Must(writing.Wait(), "write meanwhile")
		},
	},
	{
		ID:      "consistency/events-add-up-to-the-list",
		Promise: "The events up to a revision add up to the list at that revision, under load and with deletions.",
		Source:  guarantees + "; k8s.io/apiserver/pkg/storage/cacher",
		Test: func(ctx context.Context, t *T) {
			before := t.Create(ctx, "before", "1")
			watch := t.WatchAfter(ctx, before)
			var churning errgroup.Group
			const writers, each = 4, 45 // which is a multiple of 3
			for i := range writers {
				churning.Go(func() error { return churn(ctx, t.either(i), t.Key(fmt.Sprintf("churn-%d", i)), each) })
			}
			t.Must(churning.Wait(), "create, update and delete")
			events := watch.Events(writers * each)
			state := map[string]string{t.Key("before"): "1"}
			for i, event := range events {
				if kind(event) == "DELETE" {
					delete(state, string(event.Kv.Key))
				} else {
					state[string(event.Kv.Key)] = string(event.Kv.Value)
				}
				if i%20 != 0 && i != len(events)-1 {
					continue
				}
				got := map[string]string{}
				for _, kv := range t.List(ctx, "", event.Kv.ModRevision).Kvs {
					got[string(kv.Key)] = string(kv.Value)
				}
				t.Expect(got).To(gomega.Equal(state), "the list at revision %d, compared with the events until then",
					event.Kv.ModRevision)
			}
		},
	},
}

// number is the value of a key that holds one.
func (t *T) number(kv *mvccpb.KeyValue) int {
	n, err := strconv.Atoi(string(kv.Value))
	t.Must(err, "read the number in %s", kv.Key)
	return n
}

// writeInTurn updates existing keys one after another, so many times.
func writeInTurn(ctx context.Context, t *T, times int, names ...string) error {
	for i := range times {
		for _, name := range names {
			got, err := t.Other.Kubernetes.Get(ctx, t.Key(name), kubernetes.GetOptions{})
			if err != nil {
				return err
			}
			resp, err := t.Other.Kubernetes.OptimisticPut(ctx, t.Key(name), []byte(strconv.Itoa(i)),
				got.KV.GetModRevision(), putOrTell)
			if err := unrivalled("update "+name, resp.Succeeded, resp.KV, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// churn creates, updates and deletes keys in turn, and makes so many events.
func churn(ctx context.Context, client *kubernetes.Client, key string, events int) error {
	revision := int64(0)
	for i := range events {
		var err error
		if i%3 == 2 {
			resp, failed := client.Kubernetes.OptimisticDelete(ctx, key, revision, deleteOrTell)
			err = unrivalled(fmt.Sprintf("delete %s of revision %d", key, revision), resp.Succeeded, resp.KV, failed)
			revision = 0
		} else {
			resp, failed := client.Kubernetes.OptimisticPut(ctx, key, []byte(strconv.Itoa(i)), revision, putOrTell)
			err = unrivalled(fmt.Sprintf("write %s of revision %d", key, revision), resp.Succeeded, resp.KV, failed)
			revision = resp.Revision
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unrivalled is the error of a write that no other client can have come before.
func unrivalled(write string, succeeded bool, now *mvccpb.KeyValue, err error) error {
	if err == nil && !succeeded {
		err = fmt.Errorf("it was refused, though nobody else writes the key, with %s as the present state", text(now))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", write, err)
	}
	return nil
}
