package fault

import (
	"context"
	"slices"
	"time"

	"snowglobe.test/envtest/trace"
)

// The network paths that Partition cuts: each the Point of an Operation with nothing
// but an identity, which says who is at the ends. Nobody asks At about them.
const (
	// StorePath is everything between an API server, as Server, and its store.
	StorePath = "store"
	// ClientPath is everything between a client in this process, with its Name
	// and its user as Caller, and an API server, as Server.
	ClientPath = "client"
)

// observer is somebody who is told when a path is cut and when it heals.
type observer struct {
	path  Operation
	tell  func(partitioned bool)
	cutBy []*Entry // guarded by the set's telling
}

// Partitioned reports whether a rule cuts a path now, for whoever is about to
// use it; that rule has then fired.
func (s *Set) Partitioned(path Operation) bool {
	if !s.Active() {
		return false
	}
	by := s.cutting(&path)
	if len(by) == 0 {
		return false
	}
	path.Occurrence = s.count(&path)
	s.fire(by[0], trace.Applied, &path)
	return true
}

// OnPartition calls tell whenever rules begin or cease to cut a path, and before it
// returns if the path is cut already. A rule has fired when somebody was told of it.
//
// Calls come one at a time, on the goroutine that changes the rules or on a timer's.
// tell must not block, nor use the Set or stop. None come after stop has returned.
func (s *Set) OnPartition(path Operation, tell func(partitioned bool)) (stop func()) {
	if s == nil {
		return func() {}
	}
	o := s.observe(path, tell)
	return func() { s.forget(o, false) }
}

// OnPartition is Set.OnPartition for the path between the server and its store. When
// the Injector ends, what is cut heals, and there are no more calls.
func (i *Injector) OnPartition(tell func(partitioned bool)) (stop func()) {
	if i == nil {
		return func() {}
	}
	o := i.set.observe(Operation{Point: StorePath, Server: i.server}, tell)
	goOn := context.AfterFunc(i.life, func() { i.set.forget(o, true) })
	return func() {
		goOn()
		i.set.forget(o, false)
	}
}

// observe tells an observer what is so now, and whatever changes.
func (s *Set) observe(path Operation, tell func(partitioned bool)) *observer {
	path.Occurrence = s.count(&path)
	o := &observer{path: path, tell: tell}
	s.telling.Lock()
	defer s.telling.Unlock()
	s.observers = append(s.observers, o)
	s.tell(o)
	return o
}

// forget tells an observer no more; if it is to heal, once more that it does.
func (s *Set) forget(o *observer, heals bool) {
	s.telling.Lock()
	defer s.telling.Unlock()
	i := slices.Index(s.observers, o)
	if i < 0 {
		return
	}
	s.observers = slices.Delete(s.observers, i, i+1)
	if heals && len(o.cutBy) > 0 {
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
	before, now := o.cutBy, s.cutting(&o.path)
	o.cutBy = now
	for _, e := range before {
		if !slices.Contains(now, e) {
			s.record(trace.Released, e, &o.path, nil)
		}
	}
	for _, e := range now {
		if !slices.Contains(before, e) {
			s.fire(e, trace.Held, &o.path)
		}
	}
	if (len(before) > 0) != (len(now) > 0) {
		o.tell(len(now) > 0)
	}
}

// cutting returns the rules that cut a path now.
func (s *Set) cutting(path *Operation) (by []*Entry) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.rule.Kind == Partition && e.rule.Covers(path) && e.rule.during(now.Sub(e.added)) {
			by = append(by, e)
		}
	}
	return by
}

// fire counts what a rule has done to a path, and records it.
func (s *Set) fire(e *Entry, phase trace.Phase, path *Operation) {
	s.mu.Lock()
	e.fired, e.last = e.fired+1, *path
	s.mu.Unlock()
	s.record(phase, e, path, nil)
}

// changed tells who is cut off by a rule that has been added or removed.
func (s *Set) changed(entries ...*Entry) {
	if slices.ContainsFunc(entries, func(e *Entry) bool { return e.rule.Kind == Partition }) {
		s.tellObservers()
	}
}

// setAlarms has observers told when a partition begins and ends; set.mu is held.
func (e *Entry) setAlarms() {
	if e.rule.Kind != Partition {
		return
	}
	for _, age := range []time.Duration{e.rule.After, e.rule.end()} {
		if age > 0 {
			e.alarms = append(e.alarms, time.AfterFunc(age, e.set.tellObservers))
		}
	}
}
