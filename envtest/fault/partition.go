package fault

import (
	"context"
	"slices"
	"time"

	"snowglobe.test/envtest/trace"
)

// The network paths that Partition cuts. A path is written as an Operation that has one of
// these as its Point, and otherwise only the fields that say who is at its two ends. At is
// never called with such an Operation.
const (
	// StorePath is everything between an API server, as Server, and its store.
	StorePath = "store"
	// ClientPath is everything between a client in this process, with its Name
	// and its user as Caller, and an API server, as Server.
	ClientPath = "client"
)

// observer is told when rules that cut its path, or fire its signal, begin and cease to apply.
type observer struct {
	kind  ActionKind
	path  Operation // or the signal
	since time.Time // when a Fire's By begins
	tell  func(now bool)
	by    []*Entry // guarded by the set's telling
}

// Partitioned reports whether a rule cuts a path now. It is for code that is about to use the
// path, so the rule counts as fired.
func (s *Set) Partitioned(path Operation) bool {
	if !s.Active() {
		return false
	}
	by := s.standing(&observer{kind: Partition, path: path})
	if len(by) == 0 {
		return false
	}
	path.Occurrence = s.count(&path)
	s.fire(by[0], trace.Applied, &path)
	return true
}

// OnPartition calls tell whenever rules begin or cease to cut a path, and before it
// returns if the path is cut already. A rule has fired when an observer was told of it.
// When life ends, what is cut heals, and there are no more calls.
//
// Calls come one at a time, on the goroutine that changes the rules or on a timer's.
// tell must not block, nor use the Set or stop. None come after stop has returned.
func (s *Set) OnPartition(life context.Context, path Operation, tell func(partitioned bool)) (stop func()) {
	path.Occurrence = s.count(&path)
	return s.observe(life, &observer{kind: Partition, path: path, tell: tell})
}

// observe tells an observer what is so now, and whatever changes, until life ends or stop
// is called.
func (s *Set) observe(life context.Context, o *observer) (stop func()) {
	s.telling.Lock()
	s.observers = append(s.observers, o)
	s.tell(o)
	s.telling.Unlock()
	goOn := context.AfterFunc(life, func() { s.forget(o, true) })
	return func() {
		goOn()
		s.forget(o, false)
	}
}

// forget removes an observer. If heals is true and its path is cut, it is told that it heals.
func (s *Set) forget(o *observer, heals bool) {
	s.telling.Lock()
	defer s.telling.Unlock()
	i := slices.Index(s.observers, o)
	if i < 0 {
		return
	}
	s.observers = slices.Delete(s.observers, i, i+1)
	if heals && len(o.by) > 0 {
		o.tell(false)
	}
}

func (s *Set) tellObservers() {
	s.telling.Lock()
	defer s.telling.Unlock()
	for _, o := range s.observers {
		s.tell(o)
	}
}

// tell tells an observer, if something has changed for it; telling is held.
func (s *Set) tell(o *observer) {
	before, now := o.by, s.standing(o)
	o.by = now
	begun := trace.Held
	if o.kind == Fire {
		begun = trace.Applied // not Held: a fired signal is never released
	}
	for _, e := range before {
		if begun == trace.Held && !slices.Contains(now, e) {
			s.record(trace.Released, e, &o.path, nil)
		}
	}
	for _, e := range now {
		if !slices.Contains(before, e) {
			s.fire(e, begun, &o.path)
		}
	}
	if (len(before) > 0) != (len(now) > 0) {
		o.tell(len(now) > 0)
	}
}

// standing returns the rules that apply to an observer now. For a rule whose By is not over
// yet, it starts a timer that tells the observers when it is.
func (s *Set) standing(o *observer) (by []*Entry) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.rule.Kind != o.kind || !e.rule.Covers(&o.path) || !e.rule.during(now.Sub(e.added)) {
			continue
		}
		if early := e.rule.By - now.Sub(o.since); e.rule.By > 0 && early > 0 {
			time.AfterFunc(early, s.tellObservers)
			continue
		}
		by = append(by, e)
	}
	return by
}

// fire counts what a rule has done to a path or a signal, and records it.
func (s *Set) fire(e *Entry, phase trace.Phase, path *Operation) {
	s.mu.Lock()
	e.fired, e.last = e.fired+1, *path
	s.mu.Unlock()
	s.record(phase, e, path, nil)
}

// changed tells the observers that rules have been added or removed, if that concerns any.
func (s *Set) changed(entries ...*Entry) {
	if slices.ContainsFunc(entries, func(e *Entry) bool { return e.rule.Kind.stands() }) {
		s.tellObservers()
	}
}

// setAlarms starts timers that tell the observers when a Partition or Fire begins and ends;
// set.mu is held.
func (e *Entry) setAlarms() {
	if !e.rule.Kind.stands() {
		return
	}
	for _, age := range []time.Duration{e.rule.After, e.rule.end()} {
		if age > 0 {
			e.alarms = append(e.alarms, time.AfterFunc(age, e.set.tellObservers))
		}
	}
}
