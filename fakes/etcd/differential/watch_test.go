package differential

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/prototext"
)

// maxWatches is how many watches a sequence has open.
const maxWatches = 6

// fencePatience is how long a watch may take to deliver what it has to.
const fencePatience = 20 * time.Second

// watch is an open watch and what it said.
type watch struct {
	ch     clientv3.WatchChan
	cancel context.CancelFunc
	said   []string // the events and the end, as text that can be compared
	seen   int64    // the revision up to which it has surely seen everything
	ended  bool
}

// watch opens a watch, if there are not too many.
func (r *run) watch() error {
	key := r.pick(keys)
	if r.one(16) {
		key = ""
	}
	text, opts := r.spanOption()
	for _, o := range []struct {
		name string
		opt  clientv3.OpOption
	}{
		{"prev-kv", clientv3.WithPrevKV()},
		{"fragment", clientv3.WithFragment()},
		{"created", clientv3.WithCreatedNotify()},
		{"progress", clientv3.WithProgressNotify()},
		{"no-put", clientv3.WithFilterPut()},
		{"no-delete", clientv3.WithFilterDelete()},
	} {
		if r.one(4) {
			opts = append(opts, o.opt)
			text += " " + o.name
		}
	}
	rev := r.revision()
	// A watch that waits for a revision to come would hold up the fence.
	rev = min(rev, r.rev)
	opts = append(opts, clientv3.WithRev(rev))
	if len(r.open) == maxWatches {
		return nil
	}
	id := r.next
	r.next++
	r.open = append(r.open, id)
	r.done = append(r.done, fmt.Sprintf("watch %d %q%s rev=%d", id, key, text, rev))
	for _, s := range r.systems {
		// A stream of its own: a watch that fails ends the others on its stream.
		ctx, cancel := context.WithCancel(r.ctx)
		s.watches[id] = &watch{ch: s.Client.Watch(withStream(ctx, id), key, opts...), cancel: cancel}
	}
	return nil
}

// cancelWatch ends the oldest watch, after comparing what it saw.
func (r *run) cancelWatch() error {
	if len(r.open) == 0 {
		return nil
	}
	if err := r.fence(); err != nil {
		return err
	}
	if len(r.open) == 0 {
		return nil // it had ended by itself
	}
	r.end(r.open[0])
	return nil
}

// end forgets a watch.
func (r *run) end(id int) {
	r.done = append(r.done, fmt.Sprint("cancel watch ", id))
	r.open = slices.DeleteFunc(r.open, func(o int) bool { return o == id })
	for _, s := range r.systems {
		s.watches[id].cancel()
		for range s.watches[id].ch {
		}
		delete(s.watches, id)
	}
}

// cancelWatches ends all watches.
func (r *run) cancelWatches() {
	for len(r.open) > 0 {
		r.end(r.open[0])
	}
}

// fence waits until all watches have seen the current revision, and compares them.
func (r *run) fence() error {
	if len(r.open) == 0 {
		return nil
	}
	r.done = append(r.done, "compare watches")
	for _, id := range slices.Clone(r.open) {
		var first string
		for i, s := range r.systems {
			if err := s.settle(r.ctx, id, r.rev); err != nil {
				return fmt.Errorf("%s: watch %d: %w\n%s", s.Name, id, err, strings.Join(r.done, "\n"))
			}
			said := strings.Join(s.watches[id].said, "\n")
			if i == 0 {
				first = said
			} else if said != first {
				return r.differ(fmt.Sprintf("watch %d of %s and %s", id, r.systems[0].Name, s.Name),
					strings.Split(first, "\n"), strings.Split(said, "\n"))
			}
		}
		if r.systems[0].watches[id].ended {
			r.end(id)
		}
	}
	return nil
}

// settle requests progress and reads from a watch until it ends or has seen rev.
func (s *System) settle(ctx context.Context, id int, rev int64) error {
	w := s.watches[id]
	patience := time.NewTimer(fencePatience)
	defer patience.Stop()
	for !w.ended && w.seen < rev {
		if err := s.Client.RequestProgress(withStream(ctx, id)); err != nil {
			return fmt.Errorf("request progress: %w", err)
		}
		// etcd says nothing when a watch is not synced, so ask again.
		again := time.NewTimer(5 * time.Millisecond)
	read:
		for !w.ended && w.seen < rev {
			select {
			case resp, ok := <-w.ch:
				w.take(s, resp, ok)
			case <-again.C:
				break read
			case <-patience.C:
				return fmt.Errorf("has not seen revision %d after %s", rev, fencePatience)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		again.Stop()
	}
	return nil
}

// take notes a response.
func (w *watch) take(s *System, resp clientv3.WatchResponse, ok bool) {
	switch err := resp.Err(); {
	case !ok:
		w.ended = true
		w.said = append(w.said, "closed")
	case err != nil:
		w.said = append(w.said, fmt.Sprintf("%T %v canceled=%t compacted=%d", err, err, resp.Canceled, resp.CompactRevision))
	case resp.Created:
		w.said = append(w.said, "created")
	case resp.IsProgressNotify():
		w.seen = max(w.seen, resp.Header.Revision)
	}
	for _, ev := range resp.Events {
		w.said = append(w.said, prototext.Format(s.normal(ev).(*mvccpb.Event)))
	}
}

// withStream gives ctx outgoing metadata of its own, and so its watch its own stream.
func withStream(ctx context.Context, id int) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "watch", fmt.Sprint(id))
}
