package store

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/metadata"
)

const (
	consistentReads = "KEP-2340"
	bookmarkable    = guarantees + " (bookmarkable)"
	// progressInterval is how often an API server asks for progress while a read waits.
	progressInterval = 100 * time.Millisecond
)

var progressCases = []Case{
	{
		ID:      "progress/comes-when-asked-for",
		Promise: "A watch that has had all events tells its progress when asked, also if nothing is written.",
		Source:  consistentReads,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "a", "1")
			cache := t.follow(ctx, "", revision-1)
			cache.reach(revision)
			for attempts := 1; cache.progress < revision; attempts++ {
				if attempts > t.progressAttempts() {
					t.Failf("a watch that has had the last event, of revision %d, was told no progress, asked for "+
						"%d times", revision, attempts)
				}
				cache.ask()
				if resp, ok := cache.watch.poll(progressInterval); ok {
					cache.take(resp)
				}
			}
		},
	},
	{
		ID:      "progress/reaches-writes-elsewhere",
		Promise: "Progress reaches the revision of writes that the watch does not cover, each time it is asked for.",
		Source:  consistentReads + "; https://github.com/k3s-io/kine/issues/577",
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "elsewhere", "0")
			cache := t.follow(ctx, "watched/", revision)
			for i := range 20 {
				revision = t.Update(ctx, "elsewhere", fmt.Sprint(i), revision)
				cache.reach(revision)
			}
		},
	},
	{
		ID:      "progress/reaches-every-watch",
		Promise: "All watches of a client's stream are told the progress that one request asks for.",
		Source:  consistentReads,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "before", "1")
			var caches []*cache
			for _, resource := range numbered(10) {
				caches = append(caches, t.follow(ctx, resource+"/", revision))
			}
			written := t.Create(ctx, "0004/a", "1")
			for _, cache := range caches {
				cache.reach(written)
			}
			t.Expect(caches[4].values).To(gomega.HaveLen(1), "the keys that the watch of 0004/ has heard of")
		},
	},
	{
		ID:      "progress/is-never-before-an-event",
		Promise: "Under load, no event comes after a progress of its revision or a later one.",
		Source:  bookmarkable + "; " + consistentReads + "; https://github.com/k3s-io/kine/issues/731",
		Test: func(ctx context.Context, t *T) {
			before := t.Create(ctx, "before", "1")
			var caches []*cache
			for range 10 {
				caches = append(caches, t.follow(ctx, "", before))
			}
			stop := make(chan struct{})
			var written []int64
			var loading errgroup.Group
			loading.Go(func() (err error) {
				written, err = t.loadUntil(ctx, 6, 100_000, stop)
				return err
			})
			// A store may answer once for many requests, so it gets time for enough answers.
			const enough = 50
			told := 0
			for end := time.Now().Add(t.patience / 2); told < enough && time.Now().Before(end); {
				caches[0].ask()
				if resp, ok := caches[0].watch.poll(progressInterval); ok {
					caches[0].take(resp)
					if len(resp.Events) == 0 {
						told++
					}
				}
			}
			close(stop)
			t.Must(loading.Wait(), "write while progress is asked for")
			for i, cache := range caches {
				cache.upTo(len(written))
				t.whole(cache.events, written, fmt.Sprintf("watch %d of %d, with %d answers about progress", i+1,
					len(caches), told))
			}
			caches[0].reach(written[len(written)-1])
		},
	},
	{
		ID: "progress/makes-cached-reads-consistent",
		Promise: "A cache that has reached the revision of a read, by events or progress, holds every write before " +
			"that read.",
		Source: consistentReads + "; https://github.com/k3s-io/kine/issues/577; " +
			"https://github.com/k3s-io/kine/issues/731",
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "watched/a", "-1")
			cache := t.follow(ctx, "watched/", revision-1)
			loading, stop := context.WithCancel(ctx)
			defer stop()
			var elsewhere errgroup.Group
			elsewhere.Go(func() error { return errorOf(t.tryLoad(loading, 4, 100_000)) })
			for i := range 50 {
				want := fmt.Sprint(i)
				revision = t.Update(ctx, "watched/a", want, revision)
				_, now := t.Get(ctx, "missing", 0) // as the watch cache asks for the revision of a consistent read
				cache.reach(now)
				if got := cache.values[t.Key("watched/a")]; got != want {
					t.Failf("watched/a was updated to %s at revision %d; a cache that has reached revision %d holds "+
						"%s, and would answer a consistent read with that", want, revision, cache.revision, got)
				}
			}
			stop()
			_ = elsewhere.Wait() // it ends by its context
		},
	},
	{
		ID: "progress/waits-for-history",
		Promise: "A watch from a revision of the past is told no progress before its history, however many others of " +
			"its stream wait for none.",
		Source: bookmarkable + "; https://github.com/etcd-io/etcd/issues/15220",
		Test: func(ctx context.Context, t *T) {
			before := t.Create(ctx, "before", "1")
			written := t.load(ctx, 4, 75)
			last := t.Create(ctx, "after", "1")
			written = append(written, last)
			for i := range 20 {
				// A stream of its own, as etcd tells a new watch also the progress that was asked
				// for before the store knew of it.
				ctx := metadata.AppendToOutgoingContext(ctx, "stream", fmt.Sprint(i))
				t.follow(ctx, "", last)
				cache := t.follow(ctx, "", before)
				cache.ask()
				cache.reach(last)
				t.whole(cache.events, written, fmt.Sprintf("watch %d from revision %d, whose progress has reached %d",
					i+1, before, last))
			}
		},
	},
	{
		ID:      "progress/is-a-revision-of-the-store",
		Promise: "Progress is a revision that the store has reached, and never 0.",
		Source:  bookmarkable + "; https://github.com/k3s-io/k3s/issues/13316", Failure: true,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "elsewhere", "0")
			cache := t.follow(ctx, "watched/", revision)
			for i := range 10 {
				revision = t.Update(ctx, "elsewhere", fmt.Sprint(i), revision)
				cache.reach(revision)
				if _, now := t.Get(ctx, "elsewhere", 0); cache.revision > now {
					t.Failf("progress told revision %d, and a read after that revision %d", cache.revision, now)
				}
			}
		},
	},
	{
		ID:      "progress/outlives-cancelled-watches",
		Promise: "A watch is told its progress also after another of its stream was cancelled, or refused.",
		Source:  consistentReads, Failure: true,
		Test: func(ctx context.Context, t *T) {
			revision := t.Create(ctx, "a", "1")
			stays, ends := t.follow(ctx, "", revision), t.follow(ctx, "", revision)
			revision = t.Create(ctx, "b", "1")
			stays.reach(revision)
			ends.reach(revision)
			ends.watch.Cancel()
			stays.reach(t.Create(ctx, "c", "1"))
		},
	},
}

// cache follows a watch as a watch cache does, and fails the case if progress and events do
// not agree.
type cache struct {
	t     *T
	watch *Watch
	// revision is the highest that an event or progress has told; progress is the highest that
	// progress has told.
	revision, progress int64
	events             []*clientv3.Event
	values             map[string]string
}

// follow watches all below a name after a revision, as a watch cache does.
func (t *T) follow(ctx context.Context, name string, revision int64) *cache {
	watch := t.Watch(ctx, name, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithProgressNotify(),
		clientv3.WithRev(revision+1))
	return &cache{t: t, watch: watch, values: map[string]string{}}
}

// ask asks for progress on the watch's stream.
func (c *cache) ask() { c.t.Must(c.t.Client.RequestProgress(c.watch.ctx), "request progress") }

// reach asks for progress until the cache has a revision, as often as an API server does.
func (c *cache) reach(revision int64) {
	for range c.t.progressAttempts() {
		if c.revision >= revision {
			return
		}
		c.ask()
		for c.revision < revision {
			resp, ok := c.watch.poll(progressInterval)
			if !ok {
				break
			}
			c.take(resp)
		}
	}
	if c.revision < revision {
		c.t.Failf("watch of %q: the store is at revision %d, and the watch has reached %d, though its progress was "+
			"asked for %d times in %s: a consistent read from a cache would wait",
			c.watch.name, revision, c.revision, c.t.progressAttempts(), c.t.patience)
	}
}

// progressAttempts is how often progress is asked for until the case fails.
func (t *T) progressAttempts() int { return int(t.patience / progressInterval) }

// upTo takes responses until the cache has had n events, or no more come.
func (c *cache) upTo(n int) {
	for len(c.events) < n {
		resp, ok := c.watch.poll(c.t.patience)
		if !ok {
			return
		}
		c.take(resp)
	}
}

// take takes a response into the cache.
func (c *cache) take(resp clientv3.WatchResponse) {
	if err := resp.Err(); err != nil || resp.Canceled {
		c.t.Failf("watch of %q: ended, with revision %d: %v", c.watch.name, c.revision, err)
	}
	if len(resp.Events) == 0 {
		at := resp.Header.GetRevision()
		if at < c.progress || at == 0 {
			c.t.Failf("watch of %q: progress told revision %d after it had told %d", c.watch.name, at, c.progress)
		}
		c.progress, c.revision = at, max(c.revision, at)
		return
	}
	for _, event := range resp.Events {
		at := event.Kv.ModRevision
		if at <= c.progress {
			c.t.Failf("watch of %q: progress told revision %d, and after that came %s: a cache would have answered "+
				"without it", c.watch.name, c.progress, history([]*clientv3.Event{event}))
		}
		c.revision = max(c.revision, at)
		c.values[string(event.Kv.Key)] = string(event.Kv.Value)
	}
	c.events = append(c.events, resp.Events...)
}
