package envtest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"snowglobe.test/envtest/trace"
	"snowglobe.test/envtest/virtualtime"
)

// How much may be recorded at one moment of virtual time, and how often the same may
// fail there. A boot of several servers has hundreds of events at one moment, and a
// thousand watchers that hear of one change a thousand.
const (
	maxAtOnce        = 20_000
	maxFailingAtOnce = 3_000
)

// maxLoops is how many of the operations of an endless loop an error names.
const maxLoops = 4

// standstill notices that a control plane goes round and round while virtual time
// stands still. A recorder tells it of one event at a time.
type standstill struct {
	fail  func(error)
	moved func()
	since time.Time
	total int
	times map[string]int // by what happened
}

// watchStandstill fails the control plane when virtual time stands still, where time
// is virtual.
func (cp *ControlPlane) watchStandstill() {
	if !virtualtime.Virtual() {
		return
	}
	s := &standstill{times: map[string]int{}, moved: virtualtime.Moves(), fail: func(err error) {
		err = fmt.Errorf("%w%s", err, cp.rulesInForce())
		for _, server := range cp.servers {
			server.fail(err)
		}
	}}
	cp.recorder.Subscribe(s.observe)
}

func (s *standstill) observe(rec trace.Record) {
	s.moved()
	if !rec.Time.Equal(s.since) {
		s.since, s.total = rec.Time, 0
		clear(s.times)
	}
	s.total++
	name, failed := loopName(rec)
	s.times[name]++
	if s.total == maxAtOnce || failed && s.times[name] == maxFailingAtOnce {
		go s.fail(s.err(rec.Elapsed)) // not under the recorder's lock
	}
}

// err says what goes round.
func (s *standstill) err(at time.Duration) error {
	names := slices.SortedFunc(maps.Keys(s.times), func(a, b string) int {
		return cmp.Or(-cmp.Compare(s.times[a], s.times[b]), cmp.Compare(a, b))
	})
	var loops []string
	for _, name := range names[:min(len(names), maxLoops)] {
		loops = append(loops, fmt.Sprintf("%d times %s", s.times[name], name))
	}
	return fmt.Errorf("virtual time stands still at %s after the start, while %d things happened: %s; somebody tries again and again without a pause",
		at, s.total, strings.Join(loops, ", "))
}

// loopName is what happened, without what differs from one round to the next, and
// whether it failed.
func loopName(rec trace.Record) (name string, failed bool) {
	switch e := rec.Event.(type) {
	case trace.Request:
		path, _, _ := strings.Cut(e.URI, "?")
		name = fmt.Sprintf("%s %s by %s -> %d", e.Verb, path, e.User, e.Code)
		failed = e.Code >= http.StatusBadRequest
	case trace.Fault:
		name = fmt.Sprintf("%s because of the rule %q", e.Point, e.Rule)
		failed = true
	case trace.Turn:
		name = strings.TrimSpace(e.Point + " " + e.Resource + " by " + e.Caller)
	default:
		name = fmt.Sprint(rec.Event)
	}
	if rec.Server != "" {
		name = rec.Server + ": " + name
	}
	return name, failed
}
