package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"snowglobe.test/bench/load"
	"snowglobe.test/bench/measure"
	"snowglobe.test/envtest"
	"snowglobe.test/envtest/fault"
	"snowglobe.test/envtest/trace"
)

// stages are the parts of the way of an event, in order. The first begins when the event is due.
// Each ends at a point, where the next begins; the last one ends when a watcher has read the event.
// %s is the resource.
var stages = []struct{ name, point, which string }{
	{"request", "http/patch", "name=*/" + load.ObjectName(0)},
	{"handle", "store/put", "name=*/" + load.ObjectName(0)},
	{"commit", "store/watch-event", "name=*/" + load.ObjectName(0)},
	{"store watch", "cache/%s", "name=*/" + load.ObjectName(0)},
	{"cache and dispatch", "watch/%s", "name=*/" + load.ObjectName(0) + " caller=" + sampledUser},
	{"encode", writing, "phase=stream caller=" + sampledUser},
	{"write and read", "", ""},
}

// writing is the point before a part of a watch stream is written. It does not know which object it
// writes, so sum takes its first time after the event was at the point before: see firstAfter.
const writing = "http/watch"

// sampledUser is the user of the first watcher of a load whose stages are measured.
const sampledUser = "snowglobe-bench-sample"

// sampler measures the stages of the events of the first object on their way to the first watcher,
// by rules that delay them at the points for a nanosecond and so leave a record. Rules make the
// server look at every operation, so the load itself is measured in another run without them.
type sampler struct {
	of       *envtest.ControlPlane
	resource string

	entries []*fault.Entry
	stop    func()
	mu      sync.Mutex
	passed  map[string][]time.Time // by point
}

// begin begins to sample. Its caller must call end, even if it fails.
func (s *sampler) begin() error {
	s.passed = map[string][]time.Time{}
	s.stop = s.of.Trace().Subscribe(s.record)
	for _, stage := range stages[:len(stages)-1] {
		entry, err := s.of.Faults().Inject(fmt.Sprintf("delay %s %s by=1ns optional", s.point(stage.point),
			stage.which))
		if err != nil {
			return err
		}
		s.entries = append(s.entries, entry)
	}
	return nil
}

func (s *sampler) point(of string) string { return strings.ReplaceAll(of, "%s", s.resource) }

func (s *sampler) record(r trace.Record) {
	if f, ok := r.Event.(trace.Fault); ok && f.Phase == trace.Held {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.passed[f.Point] = append(s.passed[f.Point], r.Time)
	}
}

func (s *sampler) end() {
	for _, entry := range s.entries {
		entry.Remove()
	}
	if s.stop != nil {
		s.stop()
	}
}

// sum returns the stages of the events, which pass each point in the order in which they arrive.
func (s *sampler) sum(events []load.SampledEvent) ([]load.Stage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(events) == 0 {
		return nil, errors.New("the first watcher has got no event of the first object")
	}
	begun := make([]time.Time, len(events))
	for i, event := range events {
		begun[i] = event.Due
	}
	var sums []load.Stage
	for _, stage := range stages {
		ended := s.passed[s.point(stage.point)]
		switch stage.point {
		case "":
			ended = nil
			for _, event := range events {
				ended = append(ended, event.Arrived)
			}
		case writing:
			ended = firstAfter(begun, ended)
		}
		if len(ended) < len(events) {
			return nil, fmt.Errorf("%d of %d events passed %s", len(ended), len(events), s.point(stage.point))
		}
		took := measure.NewLatencies()
		for i := range events {
			took.Record(i, ended[i].Sub(begun[i]))
		}
		sums = append(sums, load.Stage{Name: stage.name, Latency: took.Sum()})
		begun = ended
	}
	return sums, nil
}

// firstAfter returns, for each time, the first of others that is not before it.
func firstAfter(times, others []time.Time) (first []time.Time) {
	for _, at := range times {
		if next := slices.IndexFunc(others, func(other time.Time) bool { return !other.Before(at) }); next >= 0 {
			first, others = append(first, others[next]), others[next:]
		}
	}
	return first
}

// stages runs a load again, and returns the stages of its events; nil where they are not known.
func (h host) stages(ctx context.Context, opts WatchOptions) ([]load.Stage, error) {
	if h.control == nil || !opts.Stages {
		return nil, nil
	}
	kind, err := load.KindOf(opts.Resource)
	if err != nil {
		return nil, err
	}
	s := &sampler{of: h.control, resource: kind.GVR().GroupResource().String()}
	defer s.end()
	opts.WarmUp = load.NoWarmUp // what it writes would pass the points too
	fmt.Fprintf(opts.Progress, "%s: again, for its stages\n", h.name)
	var failed error
	ran, err := h.load(ctx, opts, func(p measure.Phase) {
		if p == measure.PhaseBegun {
			failed = s.begin()
		}
	})
	var sums []load.Stage
	if err = errors.Join(err, failed); err == nil {
		sums, err = s.sum(ran.Sampled)
	}
	if err != nil {
		return nil, fmt.Errorf("measure the stages: %w", err)
	}
	return sums, nil
}
