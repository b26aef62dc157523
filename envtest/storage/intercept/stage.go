package intercept

import (
	"context"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/fault/edge"
)

// receiver takes the responses of a watch, in order. Calls come one at a time.
type receiver interface {
	// deliver reports whether it has taken a response. If done is nil it does not wait for
	// room; otherwise it waits until there is room or done is closed.
	deliver(r clientv3.WatchResponse, done <-chan struct{}) bool
	// end is called after the last response.
	end()
}

// outlet is the channel of a watch.
type outlet struct {
	out    chan<- clientv3.WatchResponse
	cancel context.CancelFunc
}

func (o outlet) deliver(r clientv3.WatchResponse, done <-chan struct{}) bool {
	if done == nil {
		select {
		case o.out <- r:
			return true
		default:
			return false
		}
	}
	select {
	case o.out <- r:
		return true
	case <-done:
		return false
	}
}

func (o outlet) end() {
	close(o.out)
	o.cancel()
}

// stage passes on the responses of a watch: at once, in the goroutine that calls
// deliver, as long as nothing has to wait. A response that waits for the network or
// because of a rule is queued, and later ones behind it; the queue has a goroutine
// until it is empty. The queue keeps the times of arrival, and a delay counts from
// those: ten events that arrive together with a delay of 1s all go on after one
// second, not one every second. As in a watch of etcd's client, the queue has no limit.
type stage struct {
	*follower
	network  bool // whether a partition makes it wait
	describe func(r *clientv3.WatchResponse, event *clientv3.Event) fault.Operation
	next     receiver

	mu      sync.Mutex
	waiting []arrival
	running bool // the queue has a goroutine
	ended   bool // end was called: nothing comes any more
	over    bool // next has got all that it will get
}

// arrival is something that came: one event, or none.
type arrival struct {
	what clientv3.WatchResponse
	at   time.Time
}

// deliver implements receiver.
func (s *stage) deliver(r clientv3.WatchResponse, done <-chan struct{}) bool {
	return s.keep(&r) || s.next.deliver(r, done)
}

// keep puts something at the end of the queue, unless it can go on at once.
func (s *stage) keep(r *clientv3.WatchResponse) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return true
	}
	if mustWait := s.running || s.network && s.conn.Err() != nil || s.concerns(r); !mustWait {
		return false
	}
	now := time.Now()
	for _, part := range split(r) {
		s.waiting = append(s.waiting, arrival{part, now})
	}
	if !s.running && s.conn.start(s.run) {
		s.running = true
	}
	return true
}

// split makes a response of each event.
func split(r *clientv3.WatchResponse) []clientv3.WatchResponse {
	if len(r.Events) < 2 {
		return []clientv3.WatchResponse{*r}
	}
	all := make([]clientv3.WatchResponse, len(r.Events))
	for i := range r.Events {
		all[i] = *r
		all[i].Events = r.Events[i : i+1 : i+1]
	}
	return all
}

// concerns reports whether a rule may be about something in a response.
func (s *stage) concerns(r *clientv3.WatchResponse) bool {
	if !s.injector.Active() {
		return false
	}
	if r.IsProgressNotify() {
		return s.injector.Concerns(s.describe(r, nil))
	}
	return slices.ContainsFunc(r.Events, func(event *clientv3.Event) bool { return s.injector.Concerns(s.describe(r, event)) })
}

// end implements receiver.
func (s *stage) end() {
	s.mu.Lock()
	s.ended = true
	last := !s.running && !s.over
	s.over = s.over || last
	s.mu.Unlock()
	if last {
		s.next.end()
	}
}

// run passes on what waits until nothing does.
func (s *stage) run() {
	defer context.AfterFunc(s.conn.life, s.cancel)()
	for arrivals := s.take(); len(arrivals) > 0; arrivals = s.take() {
		for _, a := range arrivals {
			if !s.pass(a) {
				s.finish()
				return
			}
		}
	}
}

// take returns what is to go on. If there is nothing the goroutine is done.
func (s *stage) take() []arrival {
	s.mu.Lock()
	arrivals := s.waiting
	s.waiting = nil
	if len(arrivals) == 0 {
		s.running, s.over = false, s.ended
	}
	over := s.over
	s.mu.Unlock()
	if over {
		s.next.end()
	}
	return arrivals
}

// pass passes on something after it has waited, and reports whether more may follow.
func (s *stage) pass(a arrival) bool {
	if s.network && s.conn.Err() != nil {
		if s.conn.await(s.ctx, nil) != nil {
			return false
		}
		a.at = time.Now() // the network is what kept it
	}
	times := 1
	if r := &a.what; s.concerns(r) {
		d := edge.Deliver(s.ctx, s.injector, func() fault.Operation {
			var event *clientv3.Event
			if len(r.Events) > 0 {
				event = r.Events[0]
			}
			op := s.describe(r, event)
			op.Arrived = a.at
			return op
		})
		if d.Last {
			return false
		}
		times = d.Times
	}
	for range times {
		if !s.next.deliver(a.what, s.ctx.Done()) {
			return false
		}
	}
	return true
}

// finish lets nothing more go on.
func (s *stage) finish() {
	s.mu.Lock()
	s.running, s.over = false, true
	s.waiting = nil
	s.mu.Unlock()
	s.stop()
	s.next.end()
}
