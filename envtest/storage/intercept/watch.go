package intercept

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/envtest/fault"
)

// watcher is the client's watches. Each has one hop between the store and its
// receiver, for rules may come while it runs.
type watcher struct {
	clientv3.Watcher
	View
}

// Watch implements clientv3.Watcher.
func (w *watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse)
	d, err := w.Edge.At(ctx, func() fault.Operation { return w.operation(ctx, "store/watch-create", key) })
	switch {
	case err != nil, d.Kind == fault.Cancel:
		close(out)
		return out
	case d.Kind == fault.Fail:
		return refused(ctx, d.Err())
	case d.Kind == fault.Drop:
		go func() {
			defer close(out)
			_ = w.Edge.Lost(ctx)
		}()
		return out
	}
	watching, end := context.WithCancel(ctx)
	relay := &Relay[clientv3.WatchResponse]{
		In: w.Watcher.Watch(watching, key, opts...), Out: out,
		Split:    func(r clientv3.WatchResponse) []clientv3.WatchResponse { return w.split(ctx, r) },
		Concerns: func(r clientv3.WatchResponse) bool { return w.concerns(ctx, &r) },
		Ask: func(_ context.Context, r clientv3.WatchResponse, arrived time.Time) ([]clientv3.WatchResponse, bool) {
			return w.ask(watching, r, arrived)
		},
	}
	go func() {
		defer end()
		relay.Run(watching)
	}()
	return out
}

// concerns reports whether a rule may be about something in a response.
func (w *watcher) concerns(ctx context.Context, r *clientv3.WatchResponse) bool {
	if !w.Edge.Active() {
		return false
	}
	if r.IsProgressNotify() {
		return w.Edge.Concerns(w.progress("notify"))
	}
	for _, event := range r.Events {
		if w.Edge.Concerns(w.event(ctx, event)) {
			return true
		}
	}
	return false
}

// split makes a response of each event, if a rule may be about one of them.
func (w *watcher) split(ctx context.Context, r clientv3.WatchResponse) []clientv3.WatchResponse {
	if len(r.Events) < 2 || !w.concerns(ctx, &r) {
		return []clientv3.WatchResponse{r}
	}
	all := make([]clientv3.WatchResponse, len(r.Events))
	for i := range r.Events {
		all[i] = r
		all[i].Events = r.Events[i : i+1 : i+1]
	}
	return all
}

// ask returns what goes on instead of a part of a response, and whether the
// watch does.
func (w *watcher) ask(ctx context.Context, r clientv3.WatchResponse, arrived time.Time) ([]clientv3.WatchResponse, bool) {
	d, err := w.Edge.At(ctx, func() fault.Operation {
		op := w.progress("notify")
		if len(r.Events) > 0 {
			op = w.event(ctx, r.Events[0])
		}
		op.Arrived = arrived
		return op
	})
	return Instead(r, d, err, func(r clientv3.WatchResponse) clientv3.WatchResponse { return r })
}

// event describes the delivery of an event.
func (w *watcher) event(ctx context.Context, event *clientv3.Event) fault.Operation {
	op := w.operation(ctx, "store/watch-event", string(event.Kv.Key))
	op.Verb, op.Revision = "put", event.Kv.ModRevision
	if event.Type == clientv3.EventTypeDelete {
		op.Verb = "delete"
	}
	return op
}

// progress describes a question how far a watch is, or the answer.
func (w *watcher) progress(verb string) fault.Operation {
	return fault.Operation{Point: "store/progress", Verb: verb, Resource: w.Resource}
}

// RequestProgress implements clientv3.Watcher. Nobody waits for an answer to the
// request itself, so that one that is lost looks like any other.
func (w *watcher) RequestProgress(ctx context.Context) error {
	d, err := w.Edge.At(ctx, func() fault.Operation { return w.progress("request") })
	if err != nil || d.Kind == fault.Drop {
		return err
	}
	return w.Watcher.RequestProgress(ctx)
}
