package robustness

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/tests/v3/robustness/traffic"
	"go.etcd.io/etcd/tests/v3/robustness/validate"
	"google.golang.org/protobuf/proto"
)

// TestLiesAreCaught tells every client the same lie about the store and expects the
// responsible validator to fail. Without the lie, the same traffic passes
// TestGuarantees.
func TestLiesAreCaught(t *testing.T) {
	tests := []struct {
		name string
		lie  lie
		// The verdict that must be a failure, and what it must say.
		verdict func(validate.RobustnessResult) validate.Result
		says    string
	}{
		{"stale read", lie{kv: staleRead}, linearization, "illegal"},
		{"lost write", lie{kv: lostWrite}, linearization, "illegal"},
		{"read of another revision", lie{kv: otherRevision}, serializable, "response didn't match expected"},
		{"lost event", lie{watch: midway(lostEvent)}, watch, "broke Reliable"},
		{"lost first event", lie{watch: lostFirst}, watch, "broke Resumable"},
		{"duplicated revision", lie{watch: midway(duplicated)}, watch, "broke Unique"},
		{"reordered events", lie{watch: reordered}, watch, "broke Ordered"},
		{"divided revision", lie{watch: divided}, watch, "broke Atomic"},
		{"early progress", lie{watch: earlyProgress}, watch, "broke Bookmarkable"},
		{"another's event", lie{watch: othersEvent}, watch, "event not matching watch filter"},
		{"wrong previous value", lie{watch: first(wrongPrevious)}, watch, "incorrect event prevValue"},
		{"wrong creation", lie{watch: midway(wrongCreation)}, watch, "incorrect event IsCreate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var forwarders sync.WaitGroup
			open := tt.lie.tell(inProcess(newServer(t)), &forwarders)
			reports := simulate(t, open, traffic.EtcdPutDeleteLease, smoke)
			forwarders.Wait()
			log, _ := persisted(reports) // which may not make sense either
			verdict := tt.verdict(judge(traffic.EtcdPutDeleteLease, reports, log))
			require.Equal(t, validate.Failure, verdict.Status, verdict.Message)
			require.Contains(t, verdict.Message, tt.says)
		})
	}
}

func linearization(r validate.RobustnessResult) validate.Result { return r.Linearization.Result }
func watch(r validate.RobustnessResult) validate.Result         { return r.Watch }
func serializable(r validate.RobustnessResult) validate.Result  { return r.Serializable }

// lie is what a client is told instead of the truth.
type lie struct {
	kv    func(truth clientv3.KV, once *atomic.Bool) clientv3.KV
	watch watchLie
}

// watchLie makes a liar for one watch of a prefix. The liar turns each response
// into those that the client receives.
type watchLie func(prefix string) liar

type liar func(resp clientv3.WatchResponse) []clientv3.WatchResponse

// tell returns a dialer whose clients receive the lie.
func (l lie) tell(open dialer, forwarders *sync.WaitGroup) dialer {
	once := new(atomic.Bool)
	return func(t *testing.T) *clientv3.Client {
		c := open(t)
		if l.kv != nil {
			c.KV = l.kv(c.KV, once)
		}
		if l.watch != nil {
			c.Watcher = &lyingWatcher{Watcher: c.Watcher, lie: l.watch, forwarders: forwarders}
		}
		return c
	}
}

type lyingWatcher struct {
	clientv3.Watcher
	lie        watchLie
	forwarders *sync.WaitGroup
}

func (w *lyingWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	truth, told := w.Watcher.Watch(ctx, key, opts...), make(chan clientv3.WatchResponse)
	lie := w.lie(key)
	w.forwarders.Go(func() {
		defer close(told)
		for resp := range truth {
			for _, r := range lie(resp) {
				select {
				case told <- r:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	return told
}

// once lies about the first response with events after so many events.
func once(after int, lie liar) watchLie {
	return func(string) liar {
		events, told := 0, false
		return func(resp clientv3.WatchResponse) []clientv3.WatchResponse {
			if len(resp.Events) == 0 || told || events < after {
				events += len(resp.Events)
				return []clientv3.WatchResponse{resp}
			}
			told = true
			return lie(resp)
		}
	}
}

func midway(lie liar) watchLie { return once(3, lie) }
func first(lie liar) watchLie  { return once(0, lie) }

// with returns a response that has other events.
func with(resp clientv3.WatchResponse, events []*clientv3.Event) clientv3.WatchResponse {
	resp.Events = events
	return resp
}

// revision returns where the events of the revision of event i begin and end.
func revision(events []*clientv3.Event, i int) (from, to int) {
	same := func(ev *clientv3.Event) bool { return ev.Kv.ModRevision == events[i].Kv.ModRevision }
	from = slices.IndexFunc(events, same)
	for to = from; to < len(events) && same(events[to]); to++ {
	}
	return from, to
}

// lostEvent leaves out the first revision.
func lostEvent(resp clientv3.WatchResponse) []clientv3.WatchResponse {
	_, to := revision(resp.Events, 0)
	if to == len(resp.Events) {
		return nil
	}
	return []clientv3.WatchResponse{with(resp, resp.Events[to:])}
}

// lostFirst leaves out the first revision, except for the watch that waits for the
// last key, which would wait forever.
func lostFirst(prefix string) liar {
	if prefix == lastPrefix {
		return func(resp clientv3.WatchResponse) []clientv3.WatchResponse { return []clientv3.WatchResponse{resp} }
	}
	return first(lostEvent)(prefix)
}

// duplicated tells the last revision twice.
func duplicated(resp clientv3.WatchResponse) []clientv3.WatchResponse {
	from, to := revision(resp.Events, len(resp.Events)-1)
	return []clientv3.WatchResponse{resp, with(resp, resp.Events[from:to])}
}

// reordered delivers a response after the next one.
func reordered(string) liar {
	events := 0
	var kept *clientv3.WatchResponse
	return func(resp clientv3.WatchResponse) []clientv3.WatchResponse {
		before := events
		events += len(resp.Events)
		switch {
		case before <= 3 && events > 3:
			kept = &resp
			return nil
		case kept != nil && len(resp.Events) > 0:
			told := []clientv3.WatchResponse{resp, *kept}
			kept = nil
			return told
		}
		return []clientv3.WatchResponse{resp}
	}
}

// divided tells each revision of several events in two responses.
func divided(string) liar {
	return func(resp clientv3.WatchResponse) []clientv3.WatchResponse {
		for i := range resp.Events {
			if from, to := revision(resp.Events, i); to-from > 1 {
				return []clientv3.WatchResponse{with(resp, resp.Events[:from+1]), with(resp, resp.Events[from+1:])}
			}
		}
		return []clientv3.WatchResponse{resp}
	}
}

// earlyProgress announces a revision that does not exist yet.
func earlyProgress(string) liar {
	return func(resp clientv3.WatchResponse) []clientv3.WatchResponse {
		if resp.IsProgressNotify() {
			header := proto.CloneOf(resp.Header)
			header.Revision += 1_000_000
			resp.Header = header
		}
		return []clientv3.WatchResponse{resp}
	}
}

// othersEvent sends a watch an event for a key outside its prefix.
func othersEvent(prefix string) liar {
	return first(func(resp clientv3.WatchResponse) []clientv3.WatchResponse {
		return changed(resp, func(ev *mvccpb.Event) {
			if prefix != "" {
				ev.Kv.Key = []byte(strings.Repeat("~", len(prefix)))
			}
		})
	})(prefix)
}

// wrongPrevious tells a previous value that never was.
func wrongPrevious(resp clientv3.WatchResponse) []clientv3.WatchResponse {
	return changed(resp, func(ev *mvccpb.Event) {
		ev.PrevKv = &mvccpb.KeyValue{Key: ev.Kv.Key, Value: []byte("never"), ModRevision: 1, Version: 1}
	})
}

// wrongCreation says that an existing key is new, and the reverse.
func wrongCreation(resp clientv3.WatchResponse) []clientv3.WatchResponse {
	return changed(resp, func(ev *mvccpb.Event) {
		if ev.Kv.CreateRevision == ev.Kv.ModRevision {
			ev.Kv.CreateRevision--
		} else {
			ev.Kv.CreateRevision = ev.Kv.ModRevision
		}
		ev.Type = mvccpb.Event_PUT
	})
}

// changed returns a response with a changed copy of its first event.
func changed(resp clientv3.WatchResponse, change func(ev *mvccpb.Event)) []clientv3.WatchResponse {
	events := slices.Clone(resp.Events)
	events[0] = proto.CloneOf(events[0])
	change(events[0])
	return []clientv3.WatchResponse{with(resp, events)}
}
