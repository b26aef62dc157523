package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

const etcd3Watcher = "k8s.io/apiserver/pkg/storage/etcd3/watcher.go"

var watchCases = []Case{
	{
		ID: "watch/event-tells-what-happened",
		Promise: "Creation, update and deletion each have an event with the key, its revision, its value and the " +
			"value before.",
		Source: guarantees + "; k8s.io/apiserver/pkg/storage/etcd3/event.go",
		Test: func(ctx context.Context, t *T) {
			watch := t.WatchAfter(ctx, t.Create(ctx, "before", "1"))
			created := t.Create(ctx, "a", "1")
			updated := t.Update(ctx, "a", "2", created)
			deleted := t.Delete(ctx, "a", updated)
			events := watch.Events(3)
			for i, want := range []struct {
				kind            string
				revision        int64
				value, previous string
			}{{"CREATE", created, "1", ""}, {"MODIFY", updated, "2", "1"}, {"DELETE", deleted, "", "2"}} {
				event := events[i]
				if string(event.Kv.Key) != t.Key("a") || kind(event) != want.kind ||
					event.Kv.ModRevision != want.revision || string(event.Kv.Value) != want.value {
					t.Failf("event %d: want %s of a at revision %d with the value %q, got %s with %q", i+1, want.kind,
						want.revision, want.value, history(events[i:i+1]), event.Kv.Value)
				}
				if (event.PrevKv == nil) != (want.previous == "") || event.PrevKv != nil &&
					string(event.PrevKv.Value) != want.previous {
					t.Failf("event %d, %s: want the previous value %q, got %s", i+1, want.kind, want.previous,
						text(event.PrevKv))
				}
			}
			t.Expect(events[1].Kv.CreateRevision).To(gomega.Equal(created),
				"the creation that the update's event tells")
			t.Expect(events[2].PrevKv.ModRevision).To(gomega.Equal(updated),
				"the revision of the value before the deletion")
		},
	},
	{
		ID:      "watch/replays-history",
		Promise: "A watch from a revision of the past begins with the first event at or after it, and leaves none out.",
		Source:  guarantees + "; " + etcd3Watcher,
		Test: func(ctx context.Context, t *T) {
			first := t.Create(ctx, "a", "1")
			second := t.Update(ctx, "a", "2", first)
			third := t.Create(ctx, "b", "1")
			fourth := t.Delete(ctx, "a", second)
			all := []int64{first, second, third, fourth}
			for i, from := range all {
				events := t.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(from)).Events(len(all) - i)
				t.Expect(revisions(events)).To(gomega.Equal(all[i:]), "the revisions of events from revision %d on",
					from)
			}
		},
	},
	{
		ID:      "watch/from-now",
		Promise: "A watch without a revision has the events after its creation, and none before.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			t.Create(ctx, "before", "1")
			watch := t.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
			watch.Created()
			watch.Quiet(ctx, "after")
		},
	},
	{
		ID:      "watch/from-the-next-revision",
		Promise: "A watch from the revision after the store's begins with the next write.",
		Source:  etcd3Watcher,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "before", "1")
			t.WatchAfter(ctx, revision).Quiet(ctx, "after")
		},
	},
	{
		ID:      "watch/tells-when-it-is-created",
		Promise: "A watch is acknowledged before its first event, with the revision of the store.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "a", "1")
			watch := t.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(revision), clientv3.WithCreatedNotify())
			t.Expect(watch.Created().Header.GetRevision()).To(gomega.BeNumerically(">=", revision),
				"the store's revision in the acknowledgement")
			watch.Events(1)
		},
	},
	{
		ID:      "watch/prefix-has-only-its-keys",
		Promise: "A watch of a prefix has the events of all keys below it, and of no others.",
		Source:  kvAPI,
		Test: func(ctx context.Context, t *T) {
			first := t.Fill(ctx, "pods0", "pods")
			watch := t.Watch(ctx, "pods/", clientv3.WithPrefix(), clientv3.WithRev(first))
			t.Fill(ctx, "pod/a", "pods/a", "podsx/a", "pods/b/c", "Pods/a", "pods-a", "pods/d")
			t.Expect(t.eventNames(watch.Events(3))).To(gomega.Equal([]string{"pods/a", "pods/b/c", "pods/d"}))
		},
	},
	{
		ID:      "watch/key-has-only-itself",
		Promise: "A watch of one key has its events, and none of keys that begin with it.",
		Source:  etcd3Watcher,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "a", "1")
			watch := t.Watch(ctx, "a", clientv3.WithRev(revision+1))
			t.Fill(ctx, "a/b", "aa", "A")
			updated := t.Update(ctx, "a", "2", revision)
			t.Expect(revisions(watch.Events(1))).To(gomega.Equal([]int64{updated}))
		},
	},
	{
		ID:      "watch/every-event-once-and-in-order",
		Promise: "Under load, a watch has every event exactly once, in the order of revisions across all keys.",
		Source:  guarantees + "; https://github.com/k3s-io/kine/issues/577",
		Test: func(ctx context.Context, t *T) {
			watch := t.WatchAfter(ctx, t.Create(ctx, "before", "1"))
			written := t.load(ctx, 8, 40)
			watch.Whole(written, "a watch from before the load")
		},
	},
	{
		ID: "watch/no-gap-between-history-and-now",
		Promise: "Watches that begin under load, at a revision of the past, go from history to new events " +
			"without a gap.",
		Source: guarantees + "; " + etcd3Watcher,
		Test: func(ctx context.Context, t *T) {
			before := t.Create(ctx, "before", "1")
			var written []int64
			var loading errgroup.Group
			loading.Go(func() (err error) {
				written, err = t.tryLoad(ctx, 4, 60)
				return err
			})
			var watches []*Watch
			for range 20 {
				watches = append(watches, t.WatchAfter(ctx, before, clientv3.WithCreatedNotify()))
				watches[len(watches)-1].Created() // so that they begin one after another
			}
			t.Must(loading.Wait(), "write while watches begin")
			for i, watch := range watches {
				watch.Whole(written, fmt.Sprintf("watch %d, which began under load", i+1))
			}
		},
	},
	{
		ID:      "watch/deletion-has-the-last-value",
		Promise: "The event of a deletion has the key's last value, also when it is replayed from history.",
		Source:  "k8s.io/apiserver/pkg/storage/etcd3/event.go",
		Test: func(ctx context.Context, t *T) {
			before := t.Create(ctx, "before", "1")
			deleted := t.Delete(ctx, "a", t.Update(ctx, "a", "last", t.Create(ctx, "a", "first")))
			events := t.WatchAfter(ctx, before).Events(3)
			if got := events[2]; got.Kv.ModRevision != deleted || got.PrevKv == nil ||
				string(got.PrevKv.Value) != "last" {
				t.Failf("a was deleted at revision %d, with the value last; its replayed event: %s, with %s before",
					deleted, history(events[2:]), text(got.PrevKv))
			}
		},
	},
	{
		ID:      "watch/many-have-each-their-own",
		Promise: "A hundred watches of one client, of as many prefixes, each have the events of theirs.",
		Source:  etcd3Watcher,
		Test: func(ctx context.Context, t *T) {
			before := t.Create(ctx, "before", "1")
			resources := numbered(100)
			var watches []*Watch
			for _, resource := range resources {
				watches = append(watches, t.Watch(ctx, resource+"/", clientv3.WithPrefix(), clientv3.WithRev(before+1)))
			}
			for _, name := range []string{"/a", "/b"} {
				for _, resource := range resources {
					t.Create(ctx, resource+name, "1")
				}
			}
			for i, resource := range resources {
				t.Expect(t.eventNames(watches[i].Events(2))).
					To(gomega.Equal([]string{resource + "/a", resource + "/b"}), "the events of the watch of %s/",
						resource)
			}
		},
	},
	{
		ID:      "watch/slow-reader-misses-nothing",
		Promise: "A watch whose reader is late has every event when it reads.",
		Source:  guarantees,
		Test: func(ctx context.Context, t *T) {
			before := t.Create(ctx, "before", "1")
			slow, fast := t.WatchAfter(ctx, before), t.WatchAfter(ctx, before)
			written := t.load(ctx, 4, 150)
			fast.Whole(written, "a watch that is read at once")
			slow.Whole(written, "a watch that is read late")
		},
	},
	{
		ID:      "watch/large-history-is-replayed",
		Promise: "Events of many megabytes are replayed to a watch, whole.",
		Source:  etcd3Watcher,
		Test: func(ctx context.Context, t *T) {
			before := t.Create(ctx, "before", "1")
			large := strings.Repeat("x", 1<<20)
			for _, name := range numbered(6) {
				t.Create(ctx, name, large)
			}
			for _, event := range t.WatchAfter(ctx, before).Events(6) {
				if string(event.Kv.Value) != large {
					t.Failf("the value of %s has a megabyte of x; its event has %d bytes, %.20q...", event.Kv.Key,
						len(event.Kv.Value), event.Kv.Value)
				}
			}
		},
	},
	{
		ID:      "watch/cancelled-one-leaves-others-alone",
		Promise: "A watch that is cancelled ends, and other watches of the same client go on.",
		Source:  etcd3Watcher, Failure: true,
		Test: func(ctx context.Context, t *T) {
			before := t.Create(ctx, "before", "1")
			ends, stays := t.WatchAfter(ctx, before), t.WatchAfter(ctx, before)
			t.Create(ctx, "a", "1")
			ends.Events(1)
			stays.Events(1)
			ends.Cancel()
			for {
				resp, ok := ends.poll(t.patience)
				if !ok {
					t.Failf("a watch was cancelled, and has not ended after %s", t.patience)
				}
				if resp.Canceled {
					break
				}
			}
			t.Create(ctx, "b", "1")
			t.Expect(t.eventNames(stays.Events(1))).To(gomega.Equal([]string{"b"}), "the events of the other watch")
		},
	},
	{
		ID:      "watch/resumed-one-misses-nothing",
		Promise: "A watch from the revision after the last event of another goes on where that ended.",
		Source:  guarantees + " (resumable); k8s.io/client-go/tools/cache/reflector.go", Failure: true,
		Test: func(ctx context.Context, t *T) {
			last := t.Create(ctx, "before", "1")
			var events []*clientv3.Event
			var written []int64
			var loading errgroup.Group
			loading.Go(func() (err error) {
				written, err = t.tryLoad(ctx, 4, 50)
				return err
			})
			const all = 4 * 50
			for len(events) < all { // each watch is read once
				watch := t.WatchAfter(ctx, last)
				resp, ok := watch.poll(t.patience)
				watch.Cancel()
				if !ok || len(resp.Events) == 0 {
					break // events are missing
				}
				events = append(events, resp.Events...)
				last = events[len(events)-1].Kv.ModRevision
			}
			t.Must(loading.Wait(), "write while watches end and begin")
			t.whole(events, written, "a row of watches, each from where the one before ended")
		},
	},
	{
		ID: "watch/compacted-start-is-refused",
		Promise: "A watch from a revision that the store has compacted ends with mvcc: required revision has been " +
			"compacted, and the revision from which it may begin.",
		Source: "k8s.io/apiserver/pkg/storage/etcd3/errors.go", Failure: true, Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			old := t.Create(ctx, "a", "1")
			compacted := t.Update(ctx, "a", "2", t.Update(ctx, "a", "1", old))
			t.Compact(ctx, compacted)
			watch := t.WatchAfter(ctx, old-1)
			resp, ok := watch.poll(t.patience)
			if !ok {
				t.Failf("a watch from revision %d, after a compaction at %d: neither begins nor ends", old, compacted)
			}
			if len(resp.Events) > 0 {
				t.Expect(resp.Events[0].Kv.ModRevision).To(gomega.Equal(old),
					"the first event of a watch from revision %d, after a compaction at %d", old, compacted)
			}
			t.compactedAway(resp.Err(), fmt.Sprintf("a watch from revision %d, after a compaction at %d", old,
				compacted))
			t.Expect(resp.CompactRevision).To(gomega.BeNumerically(">=", compacted),
				"the revision from which a watch may begin")
		},
	},
	{
		ID:      "watch/survives-compaction",
		Promise: "A watch that has had all events goes on after a compaction, and misses none.",
		Source:  etcd3Watcher, Failure: true, Needs: compacts,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "a", "1")
			watch := t.WatchAfter(ctx, revision)
			for i := range 5 {
				revision = t.Update(ctx, "a", fmt.Sprint(i), revision)
				t.Expect(revisions(watch.Events(1))).To(gomega.Equal([]int64{revision}))
				t.Compact(ctx, revision)
			}
		},
	},
}

// revisions returns the revisions of events.
func revisions(events []*clientv3.Event) []int64 {
	all := make([]int64, len(events))
	for i, event := range events {
		all[i] = event.Kv.ModRevision
	}
	return all
}

// eventNames returns the names of the events' keys, without the prefix.
func (t *T) eventNames(events []*clientv3.Event) []string {
	var kvs []*mvccpb.KeyValue
	for _, event := range events {
		kvs = append(kvs, event.Kv)
	}
	return t.names(kvs)
}

// load has writers create and update keys at the same time, and returns the revisions.
func (t *T) load(ctx context.Context, writers, each int) []int64 {
	written, err := t.tryLoad(ctx, writers, each)
	t.Must(err, "write by %d clients at the same time", writers)
	return written
}

// tryLoad is load for other goroutines than the case's.
func (t *T) tryLoad(ctx context.Context, writers, each int) ([]int64, error) {
	return t.loadUntil(ctx, writers, each, nil)
}

// loadUntil is tryLoad that ends earlier, between two writes, when a channel is closed. A writer
// that is refused goes on, so that the load stays what it is; the error comes at the end.
func (t *T) loadUntil(ctx context.Context, writers, each int, stop <-chan struct{}) ([]int64, error) {
	written := make([][]int64, writers)
	var loading errgroup.Group
	for i := range writers {
		loading.Go(func() error {
			key, revision := t.Key(fmt.Sprintf("load-%02d", i)), int64(0)
			var refused error
			for n := range each {
				select {
				case <-stop:
					return refused
				default:
				}
				resp, err := t.either(i).Kubernetes.OptimisticPut(ctx, key, fmt.Append(nil, n), revision, putOrTell)
				if err != nil {
					return err
				}
				if !resp.Succeeded {
					refused = cmp.Or(refused, fmt.Errorf("update %s of revision %d, which nobody else writes: "+
						"refused, with %s as the present state", key, revision, text(resp.KV)))
					revision = 0
					if resp.KV != nil {
						revision = resp.KV.ModRevision
					}
					continue
				}
				revision = resp.Revision
				written[i] = append(written[i], revision)
			}
			return refused
		})
	}
	err := loading.Wait()
	all := slices.Concat(written...)
	slices.Sort(all)
	return all, err
}

// whole fails the case unless events are exactly those that were written, in order.
func (t *T) whole(events []*clientv3.Event, written []int64, what string) {
	got := revisions(events)
	for i, want := range written {
		switch {
		case i >= len(got):
			t.Failf("%s: event %d of %d, of revision %d, is missing at the end", what, i+1, len(written), want)
		case got[i] != want:
			t.Failf("%s: event %d of %d should be of revision %d, and is of %d; around it: %v", what, i+1, len(written),
				want, got[i], got[max(0, i-3):min(len(got), i+4)])
		}
	}
	if len(got) > len(written) {
		t.Failf("%s: %d events of %d writes", what, len(got), len(written))
	}
}
