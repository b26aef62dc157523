package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Watch is a watch of a case.
type Watch struct {
	// Cancel ends it.
	Cancel context.CancelFunc

	t         *T
	name      string
	ctx       context.Context // clientv3 finds the watch's stream by its metadata
	responses clientv3.WatchChan
}

// Next returns the next response. The case fails if none comes, or the watch ends.
func (w *Watch) Next(awaited string) clientv3.WatchResponse {
	resp, ok := w.poll(w.t.patience)
	if !ok {
		w.t.Failf("watch of %q: %s did not come within %s", w.name, awaited, w.t.patience)
	}
	if err := resp.Err(); err != nil {
		w.t.Failf("watch of %q: ended while %s was awaited: %v", w.name, awaited, err)
	}
	return resp
}

// poll returns the next response, or false if none comes in time.
func (w *Watch) poll(timeout time.Duration) (clientv3.WatchResponse, bool) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case resp, ok := <-w.responses:
		if !ok {
			resp.Canceled = true
		}
		return resp, true
	case <-timer.C:
		return clientv3.WatchResponse{}, false
	}
}

// Events returns the next n events, and fails the case if more come along with them.
func (w *Watch) Events(n int) []*clientv3.Event {
	var events []*clientv3.Event
	for len(events) < n {
		resp := w.Next(fmt.Sprintf("event %d of %d (after %s)", len(events)+1, n, history(events)))
		events = append(events, resp.Events...)
	}
	if len(events) > n {
		w.t.Failf("watch of %q: %d events came where there are %d: %s", w.name, len(events), n, history(events))
	}
	return events
}

// Whole fails the case unless the events are exactly those that were written, in order.
func (w *Watch) Whole(written []int64, what string) {
	w.t.whole(w.upTo(len(written)), written, what)
}

// upTo returns the next n events, fewer if they do not come.
func (w *Watch) upTo(n int) (events []*clientv3.Event) {
	for len(events) < n {
		resp, ok := w.poll(w.t.patience)
		if !ok || resp.Err() != nil {
			break
		}
		events = append(events, resp.Events...)
	}
	return events
}

// Created waits until the store has acknowledged a watch with clientv3.WithCreatedNotify.
func (w *Watch) Created() clientv3.WatchResponse {
	resp := w.Next("the notification that it is created")
	if !resp.Created || len(resp.Events) > 0 {
		w.t.Failf("watch of %q: something else came before the notification that it is created: %s", w.name,
			history(resp.Events))
	}
	return resp
}

// Quiet creates the key marker, which the watch must cover, and fails the case if any event
// comes before that of the marker.
func (w *Watch) Quiet(ctx context.Context, marker string) {
	w.t.Create(ctx, marker, "marker")
	event := w.Events(1)[0]
	if got := string(event.Kv.Key); got != w.t.Key(marker) {
		w.t.Failf("watch of %q: nothing should come before %s, but this did: %s", w.name, marker,
			history([]*clientv3.Event{event}))
	}
}

// history shows events for people.
func history(events []*clientv3.Event) string {
	if len(events) == 0 {
		return "no events"
	}
	const shown = 12
	var all []string
	for _, event := range events[max(0, len(events)-shown):] {
		all = append(all, fmt.Sprintf("%s %s@%d", kind(event), event.Kv.Key, event.Kv.ModRevision))
	}
	return strings.Join(all, ", ")
}

func kind(event *clientv3.Event) string {
	switch {
	case event.Type == mvccpb.DELETE:
		return "DELETE"
	case event.IsCreate():
		return "CREATE"
	}
	return "MODIFY"
}
