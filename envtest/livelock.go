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

// At one moment of virtual time, maxAtOnce events may be recorded, and the same operation may
// fail maxFailingAtOnce times. Working control planes stay far below: a boot of several
// servers has hundreds of events at one moment, and a change with a thousand watchers a
// thousand.
const (
	maxAtOnce        = 20_000
	maxFailingAtOnce = 3_000
)

// maxLoops is how many of the operations of an endless loop an error names.
const maxLoops = 4

// livelock notices that a control plane loops while virtual time stands still. The recorder
// calls observe for one event at a time, so the fields need no lock.
type livelock struct {
	fail  func(error)
	moved func()         // tells virtualtime.Watched that something happens
	since time.Time      // the moment that total and times count
	total int            // events at that moment
	times map[string]int // the same by loopName
}

// watchForLivelock fails the control plane when it loops at one moment of virtual time. In
// real time it does nothing.
func (cp *ControlPlane) watchForLivelock() {
	if !virtualtime.Virtual() {
		return
	}
	l := &livelock{times: map[string]int{}, moved: virtualtime.Moves(), fail: func(err error) {
		err = fmt.Errorf("%w%s", err, cp.rulesInForce())
		for _, server := range cp.servers {
			server.fail(err)
		}
	}}
	cp.recorder.Subscribe(l.observe)
}

func (l *livelock) observe(rec trace.Record) {
	l.moved()
	if !rec.Time.Equal(l.since) {
		l.since, l.total = rec.Time, 0
		clear(l.times)
	}
	l.total++
	name, failed := loopName(rec)
	l.times[name]++
	if l.total == maxAtOnce || failed && l.times[name] == maxFailingAtOnce {
		go l.fail(l.err(rec.Elapsed)) // not under the recorder's lock
	}
}

// err names the most frequent events of the moment: the loop.
func (l *livelock) err(at time.Duration) error {
	names := slices.SortedFunc(maps.Keys(l.times), func(a, b string) int {
		return cmp.Or(-cmp.Compare(l.times[a], l.times[b]), cmp.Compare(a, b))
	})
	var loops []string
	for _, name := range names[:min(len(names), maxLoops)] {
		loops = append(loops, fmt.Sprintf("%d times %s", l.times[name], name))
	}
	return fmt.Errorf("%w at %s after the start, while %d things happened: %s; a client tries again and again without a pause",
		virtualtime.ErrStandstill, at, l.total, strings.Join(loops, ", "))
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
